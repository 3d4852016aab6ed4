"""Large files, which only the long form makes: a fault far into a file, and what would fill the memory."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

from tests.faults.corpus.case import bad

MEGABYTE = 1 << 20


def repeated(head: bytes, row: bytes, times: int, tail: bytes) -> Callable[[Path], None]:
    """A file of equal rows with others before and behind them."""
    block = row * max(1, MEGABYTE // len(row))
    whole, rest = divmod(times * len(row), len(block))

    def write(path: Path) -> None:
        with (gzip.open if path.suffix == ".gz" else open)(path, "wb") as file:
            file.write(head)
            for _ in range(whole):
                file.write(block)
            file.write(block[:rest] + tail)

    return write


CASES = [
    bad(
        "a blank in row 1,000,000",
        "data a.csv --column text",
        {"a.csv": repeated(b"text,n\n", b"some text,1\n", 999_999, b",1\n")},
        "a.csv, line 1000001, column 'text'",
        long=True,
    ),
    bad(
        "a text for a number in row 1,000,000",
        "regress a.csv",
        {"a.csv": repeated(b"text,y\n", b"some text,1\n", 999_999, b"some text,one\n")},
        "a.csv, line 1000001, column 'y'",
        "'one'",
        long=True,
    ),
    bad(
        "a broken line 1,000,000",
        "classify a.jsonl",
        {"a.jsonl": repeated(b"", b'{"text": "a", "label": "b"}\n', 999_999, b'{"text": \n')},
        "a.jsonl, line 1000000, column 10",
        long=True,
    ),
    bad(
        "a bad byte in line 1,000,000",
        "translate a.tsv",
        {"a.tsv": repeated(b"", b"der Hund\tthe dog\n", 999_999, b"caf\x81\tx\n")},
        "a.tsv, line 1000000, column 4",
        long=True,
    ),
    bad(
        "a line of 500 MB",
        "classify a.csv",
        {"a.csv": repeated(b"text,label\n", b"a", 500_000_000, b"")},
        "a.csv, line 2",
        "67,108,864",
        long=True,
    ),
    bad(
        "a line of 500 MB in 500 kB",
        "data a.csv.gz",
        {"a.csv.gz": repeated(b"text,label\n", b"a", 500_000_000, b"")},
        "a.csv.gz, line 2",
        "67,108,864",
        long=True,
    ),
    bad(
        "a quote over 100 MB",
        "classify a.csv",
        {"a.csv": repeated(b'text,label\n"', b"a line,1\n", 12_000_000, b"")},
        "a.csv, line 2",
        "quote",
        long=True,
    ),
    bad(
        "a list of 300 MB",
        "data a.json",
        {"a.json": repeated(b"[", b'"a text of some length", ', 12_000_000, b'"a"]')},
        "a.json",
        "268,435,456",
        long=True,
    ),
]
