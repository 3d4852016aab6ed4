"""Tables of texts and classes: csv, tsv, jsonl, json, parquet."""

from __future__ import annotations

import json
from typing import Any

import polars

from tests.faults.corpus.case import Content, asks, bad, good

ROWS = "text,language\n" + "".join(f"word{i},{'en' if i % 2 else 'fr'}\n" for i in range(40))
LABELS = "text,label\n" + "".join(f"word{i},{'en' if i % 2 else 'fr'}\n" for i in range(40))
JSONL = "".join(f'{{"text": "hello {i}", "label": "{"ab"[i % 2]}"}}\n' for i in range(40))


def csv(name: str, data: Content, *says: str, words: str = "data a.csv") -> Any:
    return bad(name, words, {"a.csv": data}, "a.csv", *says)


def reads(name: str, data: Content, *says: str, words: str = "classify a.csv", **facts: Any) -> Any:
    return good(name, words, {"a.csv": data}, *says, **facts)


def jsonl(name: str, more: str | bytes, *says: str, words: str = "classify a.jsonl") -> Any:
    data = more if isinstance(more, bytes) else more.encode()
    return bad(name, words, {"a.jsonl": JSONL.encode() + data}, "a.jsonl", *says)


def parquet(frame: polars.DataFrame) -> Content:
    return lambda path: frame.write_parquet(path)


OF_CSV = [
    csv("empty csv", b"", "empty", "header"),
    csv("csv of blank lines", "\n\n\n", "empty"),
    csv("header only", "text,language\n", "text, language", "no row"),
    csv("header and blank lines", "text,language\n\n\n", "no row"),
    csv("header only to classify", "text,label\n", "no row", words="classify a.csv"),
    csv("more cells than the header", ROWS + "a, b,en\n", "line 42", "3 cells", "2"),
    csv("bad last row", ROWS + "half", "line 42", "1 cell"),
    csv("ragged to classify", LABELS + "a,b,c,d\n" + LABELS[11:], "line 42", "4 cells", words="classify a.csv"),
    csv("empty text cell", ROWS + ",en\n", "line 42, column 'text'", "empty"),
    csv("empty label", LABELS + "word,\n", "line 42, column 'label'", "empty", words="classify a.csv"),
    csv(
        "empty class of a condition",
        ROWS + "word,\n",
        "line 42, column 'language'",
        "empty",
        words="data a.csv --condition language",
    ),
    csv("quote never closed", ROWS + '"never closed,en\nx,y\n', "line 42", "quote"),
    csv("text behind a quote", ROWS + '"a"b,en\n', "line 42", "quote"),
    csv("cut inside a quoted cell", ROWS + '"half of a', "line 42", "quote"),
    csv("column named twice", "text,text\na,b\n", "line 1, column 2", "'text'", "twice"),
    csv("column without a name", "text,\na,b\n", "line 1, column 2", "no name"),
    csv("header of spaces", " , \na,b\n", "line 1, column 1", "no name"),
    csv("header there twice", LABELS + LABELS, "line 42", "header", words="classify a.csv"),
    csv("Cyrillic csv", ROWS.encode() + "привет,ru\n".encode("cp1251"), "line 42, column 1", "0xEF", "--encoding"),
    csv("UTF-8 csv with Latin-1", (ROWS + "café,fr\n").encode() + b"caf\xe9,fr\n", "line 43, column 4", "mixes"),
    csv("NUL in a csv", LABELS + "a\0b,en\n", "line 42, column 2", "NUL", words="classify a.csv"),
    csv("spreadsheet called csv", b"PK\x03\x04" + bytes(300), "office", words="classify a.csv"),
    bad("spreadsheet", "classify a.xlsx", {"a.xlsx": b"PK\x03\x04" + bytes(300)}, "a.xlsx", ".csv"),
    csv("parquet called csv", b"PAR1" + bytes(300), "parquet", words="classify a.csv"),
    csv("binary called csv", bytes(range(1, 32)) * 40, "binary", words="regress a.csv"),
    csv(
        "web page called csv", "<!DOCTYPE html>\n<html><body>Not found</body></html>\n", "line", words="classify a.csv"
    ),
    csv(
        "a single class",
        "text,language\n" + "".join(f"w{i},en\n" for i in range(40)),
        "column 'language'",
        "'en'",
        words="data a.csv --condition language",
    ),
    csv(
        "a single label",
        "text,label\n" + "".join(f"w{i},en\n" for i in range(40)),
        "'en'",
        "single",
        words="classify a.csv",
    ),
    csv(
        "one example a label",
        "text,label\n" + "".join(f"w{i},c{i}\n" for i in range(40)),
        "40 classes",
        words="classify a.csv",
    ),
    csv("one row", "text\nhello\n", "one example"),
    csv("one row to classify", "text,label\nhello,a\n", "one example", words="classify a.csv"),
    csv("two rows to classify", "text,label\nhello,a\nbye,b\n", "too small", words="classify a.csv"),
    csv(
        "names instead of classes",
        "text,id\n" + "".join(f"word{i},{i}\n" for i in range(100)),
        "column 'id'",
        "100",
        words="data a.csv --condition id",
    ),
    csv(
        "text to regress on",
        LABELS.replace("label", "y"),
        "line 2, column 'y'",
        "'fr'",
        "number",
        words="regress a.csv",
    ),
    csv(
        "a blank among numbers",
        "text,y\n" + "a,1\n" * 20 + "b, \n",
        "line 22, column 'y'",
        "empty",
        words="regress a.csv",
    ),
    csv(
        "NaN to regress on", "text,y\n" + "a,1\n" * 20 + "b,NaN\n", "line 22, column 'y'", "NaN", words="regress a.csv"
    ),
    csv(
        "infinity to regress on",
        "text,y\n" + "a,1\n" * 20 + "b,-inf\n",
        "line 22, column 'y'",
        "finite",
        words="regress a.csv",
    ),
    csv(
        "number beyond double precision",
        "text,y\n" + "a,1\n" * 20 + "b,1e999\n",
        "line 22, column 'y'",
        "finite",
        words="regress a.csv",
    ),
    csv(
        "number beyond single precision",
        "text,y\n" + "".join(f"a{i},{i}e300\n" for i in range(20)),
        "column 'y'",
        "line 3",
        "large",
        words="regress a.csv",
    ),
    csv(
        "thousands separators",
        "text,y\n" + 'a,"1,234,567"\n' * 20,
        "line 2, column 'y'",
        "1,234,567",
        "thousands",
        words="regress a.csv",
    ),
    csv(
        "one comma that may be either",
        "text,y\n" + 'a,"1,234"\n' * 20,
        "line 2, column 'y'",
        "1,234",
        "thousands",
        "--decimal",
        words="regress a.csv",
    ),
    csv("money", "text,y\n" + "a,$5.20\n" * 20, "line 2, column 'y'", "$5.20", words="regress a.csv"),
    csv("percent", "text,y\n" + "a,5%\n" * 20, "line 2, column 'y'", "5%", words="regress a.csv"),
    csv("number with underscores", "text,y\n" + "a,1_000\n" * 20, "line 2, column 'y'", "1_000", words="regress a.csv"),
    csv("hexadecimal", "text,y\n" + "a,0x1F\n" * 20, "line 2, column 'y'", "0x1F", words="regress a.csv"),
    csv(
        "spreadsheet error",
        "text,y\n" + "a,1\n" * 20 + "b,#DIV/0!\n",
        "line 22, column 'y'",
        "#DIV/0!",
        words="regress a.csv",
    ),
    csv(
        "date to regress on",
        "text,y\n" + "a,2024-05-31\n" * 20,
        "line 2, column 'y'",
        "2024-05-31",
        words="regress a.csv",
    ),
    csv(
        "constant target",
        "text,y\n" + "".join(f"a{i},7\n" for i in range(40)),
        "a.csv",
        "7",
        "every example",
        words="regress a.csv",
    ),
    csv(
        "part that is none",
        "text,label,part\n" + "a,x,train\n" * 9 + "b,y,holdout\n",
        "line 11, column 'part'",
        "holdout",
        words="classify a.csv part=part",
    ),
    csv("no part for training", "text,label,part\n" + "a,x,test\n" * 9, "train", words="classify a.csv part=part"),
    csv(
        "long value in a message",
        "text,y\n" + "a,1\n" * 20 + "b," + "9" * 100_000 + "x\n",
        "line 22, column 'y'",
        words="regress a.csv",
    ),
    csv(
        "long header in a message",
        ",".join(f"c{i}" for i in range(50_000)) + "\n1,2\n",
        "line 2",
        "2 cells",
        "50000",
        words="classify a.csv target=c1",
    ),
    asks("text column not named", "next-token a.csv", {"a.csv": "name,language\na,b\n"}, "a.csv", "--column", "name"),
    asks("column that is not there", "classify a.csv column=body", {"a.csv": LABELS}, "a.csv", "body", "label, text"),
    asks("target that is not there", "classify a.csv target=lable", {"a.csv": LABELS}, "a.csv", "lable", "'label'"),
    asks("target not named", "classify a.csv", {"a.csv": "a,b,c\n" + "x,y,z\n" * 9}, "a.csv", "--target", "a, b, c"),
    asks("group that is not there", "classify a.csv group=speaker", {"a.csv": LABELS}, "a.csv", "speaker"),
    asks("part column that is not there", "classify a.csv part=fold", {"a.csv": LABELS}, "a.csv", "fold"),
    asks(
        "very many columns to choose from",
        "data a.csv",
        {"a.csv": ",".join(f"c{i}" for i in range(20_000)) + "\n" + ",".join("x" * 20_000) + "\n"},
        "a.csv",
        "--column",
        "c0",
    ),
    reads("byte order mark in a csv", "\ufeff" + LABELS, "byte order mark", examples=40),
    reads("Windows line ends in a csv", LABELS.replace("\n", "\r\n"), "line ends", examples=40),
    reads("old Mac line ends in a csv", LABELS.replace("\n", "\r"), "line ends", examples=40),
    reads(
        "line ends inside cells",
        "text,label\n" + "".join(f'"two\nlines {i}",{i % 2}\n' for i in range(40)),
        examples=40,
    ),
    reads(
        "quotes and commas inside cells",
        "text,label\n" + "".join(f'"a ""b"", c {i}",{i % 2}\n' for i in range(40)),
        examples=40,
    ),
    reads("blank lines in a csv", LABELS + "\n\n", "2 blank lines", examples=40),
    reads("spaces around names", " text , label \n" + LABELS[11:], examples=40),
    reads("negative classes", LABELS.replace("en", "-1").replace("fr", "1"), outputs=2),
    reads("classes called none and NA", LABELS.replace("en", "none").replace("fr", "NA"), outputs=2),
    reads("capital names of columns", LABELS.replace("text,label", "Text,LABEL"), examples=40),
    reads(
        "several hundred columns",
        "text,label,"
        + ",".join(f"c{i}" for i in range(500))
        + "\n"
        + "".join(f"w{i},{i % 2}" + ",x" * 500 + "\n" for i in range(40)),
        examples=40,
    ),
    reads(
        "numbers as texts",
        "text,y\n" + "".join(f"a{i}, {i}e-3 \n" for i in range(40)),
        examples=40,
        words="regress a.csv",
    ),
    reads(
        "a row number in front, as R and pandas write it",
        ",text,label\n" + "".join(f"{i},w{i},{i % 2}\n" for i in range(40)),
        "row names",
        examples=40,
    ),
]

OF_JSON = [
    bad("empty jsonl", "classify a.jsonl", {"a.jsonl": ""}, "a.jsonl", "no row"),
    jsonl("broken line", '{"text": "x"\n', "line 41, column 13", "JSON"),
    jsonl("two objects on a line", '{"text": "x", "label": "a"} {"text": "y", "label": "b"}\n', "line 41", "JSON"),
    jsonl("other keys in line 41", '{"body": "b", "label": "a"}\n', "line 41, column 'text'"),
    jsonl("null", '{"text": null, "label": "a"}\n', "line 41, column 'text'", "empty"),
    jsonl("number for a text", '{"text": 3.5, "label": "a"}\n', "line 41, column 'text'", "3.5", "text"),
    jsonl("list for a row", "[1]\n", "line 41", "list"),
    jsonl("scalar for a row", "3\n", "line 41", "number"),
    jsonl("deep nesting", '{"text":' * 100_000 + "\n", "line 41", "deep"),
    jsonl("endless number", '{"text": "x", "label": ' + "1" * 5000 + "}\n", "line 41"),
    jsonl("lone surrogate", '{"text": "a\\ud800", "label": "a"}\n', "line 41, column 'text'", "surrogate"),
    jsonl("name there twice", '{"text": "x", "text": "y", "label": "a"}\n', "line 41", "'text'", "twice"),
    jsonl("NaN for a label", '{"text": "x", "label": NaN}\n', "line 41, column 'label'"),
    jsonl("list for a text", '{"text": ["a", "b"], "label": "a"}\n', "line 41, column 'text'", "list"),
    jsonl("object for a label", '{"text": "x", "label": {"a": 1}}\n', "line 41, column 'label'", "class"),
    jsonl("float for a label", '{"text": "x", "label": 1.5}\n', "line 41, column 'label'", "1.5"),
    jsonl("Cyrillic in a jsonl", '{"text": "привет", "label": "a"}\n'.encode("cp1251"), "line 41, column 11", "0xEF"),
    bad(
        "infinity in a jsonl",
        "regress a.jsonl",
        {"a.jsonl": "".join(f'{{"text": "w{i}", "y": {i}}}\n' for i in range(20)) + '{"text": "w", "y": Infinity}\n'},
        "a.jsonl, line 21, column 'y'",
        "inf",
    ),
    bad(
        "one JSON list called jsonl",
        "classify a.jsonl",
        {"a.jsonl": json.dumps([{"text": "a", "label": "b"}])},
        "a.jsonl, line 1",
        "list",
    ),
    bad(
        "series of unequal rows",
        "classify a.jsonl",
        {"a.jsonl": '{"x": [[1, 2], [3]], "label": "a"}\n' * 9},
        "a.jsonl, line 1, column 'x'",
        "length",
    ),
    bad(
        "series with a text in it",
        "classify a.jsonl",
        {"a.jsonl": '{"x": [1, 2], "label": "a"}\n' * 9 + '{"x": [1, "b"], "label": "a"}\n'},
        "a.jsonl, line 10, column 'x'",
        "numbers",
    ),
    bad(
        "series with null in it",
        "classify a.jsonl",
        {"a.jsonl": '{"x": [1, 2], "label": "a"}\n' * 9 + '{"x": [1, null], "label": "b"}\n'},
        "a.jsonl, line 10",
        "step 2",
        "--missing",
    ),
    bad(
        "series of another width",
        "classify a.jsonl",
        {"a.jsonl": '{"x": [[1, 2]], "label": "a"}\n' * 9 + '{"x": [[1, 2, 3]], "label": "b"}\n'},
        "a.jsonl, line 10",
        "3 channels",
    ),
    bad(
        "empty series",
        "classify a.jsonl",
        {"a.jsonl": '{"x": [1, 2], "label": "a"}\n' * 9 + '{"x": [], "label": "b"}\n'},
        "a.jsonl, line 10",
    ),
    bad("json object", "data a.json", {"a.json": '{"text": "x"}'}, "a.json", "object", "list"),
    bad("cut json", "data a.json", {"a.json": '["x",\n'}, "a.json, line 2, column 1", "JSON"),
    bad("blank json", "data a.json", {"a.json": " "}, "a.json", "empty"),
    bad("text called parquet", "data a.parquet", {"a.parquet": ROWS}, "a.parquet", "parquet"),
    bad("damaged parquet", "data a.parquet", {"a.parquet": b"PAR1" + bytes(100)}, "a.parquet", "damaged"),
    bad(
        "null in a parquet",
        "classify a.parquet",
        {"a.parquet": parquet(polars.DataFrame({"text": ["a", "b"] * 20, "label": ["x", "y"] * 19 + ["x", None]}))},
        "a.parquet, row 40, column 'label'",
        "empty",
    ),
    bad(
        "dates to regress on in a parquet",
        "regress a.parquet",
        {
            "a.parquet": parquet(
                polars.DataFrame({"text": ["a"] * 20, "y": ["2024-05-31"] * 20}).with_columns(
                    polars.col("y").str.to_date()
                )
            )
        },
        "a.parquet, row 1, column 'y'",
        "2024-05-31",
    ),
    bad(
        "no row in a parquet",
        "classify a.parquet",
        {"a.parquet": parquet(polars.DataFrame({"text": ["a"], "label": ["b"]}).clear())},
        "a.parquet",
        "no ",
    ),
    good(
        "whole floats are classes",
        "classify a.jsonl",
        {"a.jsonl": "".join(f'{{"text": "w{i}", "label": {i % 2}.0}}\n' for i in range(40))},
        outputs=2,
    ),
    good(
        "keys in another order",
        "classify a.jsonl",
        {"a.jsonl": JSONL + '{"label": "a", "more": 1, "text": "x"}\n'},
        examples=41,
    ),
    good(
        "escapes in a jsonl",
        "classify a.jsonl",
        {"a.jsonl": JSONL + '{"text": "\\ud83d\\ude00\\u0000", "label": "a"}\n'},
        examples=41,
    ),
]

CLASSES = "text,label\n" + "".join(f'word {i},"[""{"xy"[i % 2]}""]"\n' for i in range(20))
SEVERAL = "classify a.csv class_separator=|"
OF_LISTS = [
    csv("classes nested 100,000 deep", CLASSES + "c," + "[" * 100_000 + "\n", "line 22", "deep", words=SEVERAL),
    csv("a class of 5,000 digits", CLASSES + f"c,[{'9' * 5000}]\n", "line 22", "digits", words=SEVERAL),
]
CASES = [*OF_CSV, *OF_JSON, *OF_LISTS]
