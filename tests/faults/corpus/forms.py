"""Tables as spreadsheets write them: other separators, decimal commas, other encodings; found out, or given."""

from __future__ import annotations

from tests.faults.corpus.case import asks, good
from tests.faults.corpus.tables import LABELS, csv, reads

CASES = [
    csv("ragged row between semicolons", LABELS.replace(",", ";") + "a;b;c\n", "line 42", "3 cells", "';'"),
    asks(
        "a separator that is not there", "classify a.csv 'separator=;' target=label", {"a.csv": LABELS}, "label", "text"
    ),
    csv(
        "thousands between semicolons",
        "text;y\n" + "a;1,5\n" * 20 + "b;1.234,5\n",
        "line 22, column 'y'",
        "thousands",
        words="regress a.csv",
    ),
    csv(
        "a point among decimal commas",
        "text;y\n" + "a;1,5\n" * 20 + "b;1.234\n",
        "line 22, column 'y'",
        "may be",
        "--decimal",
        words="regress a.csv",
    ),
    csv(
        "a decimal comma against what is given",
        "text;y\n" + "a;1,5\n" * 20,
        "line 2, column 'y'",
        "'.'",
        words="regress a.csv decimal=.",
    ),
    reads("semicolons", LABELS.replace(",", ";"), "';'", "--separator", examples=40),
    reads("tabs in a csv", LABELS.replace(",", "\t"), "a tab", examples=40),
    reads("bars in a csv", LABELS.replace(",", "|"), "'|'", examples=40),
    good("commas in a tsv", "classify a.tsv", {"a.tsv": LABELS}, "','", examples=40),
    reads("the separator that Excel names", "sep=;\n" + LABELS.replace(",", ";"), examples=40),
    reads("a separator that is given", LABELS.replace(",", "~"), examples=40, words="classify a.csv separator=~"),
    reads(
        "semicolons with commas in texts",
        "text;label, true\n" + "".join(f"ja, nein {i};{'ab'[i % 2]}\n" for i in range(40)),
        "';'",
        examples=40,
        words="classify a.csv 'target=[\"label, true\"]'",
    ),
    reads(
        "semicolons and decimal commas",
        "text;y\n" + "".join(f"a{i};{i},5\n" for i in range(40)),
        "';'",
        "decimal comma",
        examples=40,
        words="regress a.csv",
    ),
    reads(
        "decimal commas in quotes",
        "text,y\n" + "".join(f'a{i},"{i},25"\n' for i in range(40)),
        "decimal comma",
        examples=40,
        words="regress a.csv",
    ),
    reads(
        "three decimals behind a comma, and that",
        "text,y\n" + "".join(f'a{i},"{i + 1},234"\n' for i in range(40)),
        examples=40,
        words="regress a.csv decimal=,",
    ),
    reads(
        "a table of Excel in German",
        ("Text;Label\r\n" + "".join(f"Müller {i};{'äß'[i % 2]}\r\n" for i in range(40))).encode("cp1252"),
        "';'",
        "Windows-1252",
        "Müller",
        examples=40,
    ),
    reads("Latin-1 csv", LABELS.encode() + b"caf\xe9,fr\n", "Windows-1252", "café", examples=41),
    reads("UTF-16 csv", LABELS.encode("utf-16"), "UTF-16", examples=40),
    reads(
        "UTF-16 without a mark in a csv", LABELS.replace(",", "\t").encode("utf-16-le"), "UTF-16", "tab", examples=40
    ),
]
