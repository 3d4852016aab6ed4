"""Every bad file is answered by one sentence with its place: file, line, column, what was found, what to do."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
from collections import deque

import numpy as np
import polars
import pytest

from unrolled.core.errors import CannotWrite, DataError, UsageError
from unrolled.data.config import DataConfig
from unrolled.data.plain import TextFile
from unrolled.data.prepare import prepare
from unrolled.data.section import SectionWriter
from unrolled.data.text import open_source

LINES = "The quick brown fox jumps over the lazy dog.\n" * 20
ROWS = "text,language\n" + "".join(f"word{i},{'en' if i % 2 else 'fr'}\n" for i in range(40))


def complaint(source, kind=DataError, **settings) -> str:
    with pytest.raises(kind) as caught:
        prepare(source, DataConfig(**settings))
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert "Traceback" not in sentence
    return sentence


def made(tmp_path, name: str, data: bytes | str):
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


PLAIN = {
    "empty": (b"", "the file is empty; there is nothing to learn from"),
    "utf-16": (LINES.encode("utf-16"), "this is UTF-16, not UTF-8; convert it with: iconv -f UTF-16 -t UTF-8"),
    "utf-16 without mark": (LINES.encode("utf-16-le"), "looks like UTF-16 without a mark; convert it"),
    "utf-32": (LINES.encode("utf-32"), "this is UTF-32, not UTF-8"),
    "latin-1": (
        (LINES + "naïve café").encode("latin-1"),
        "line 21, column 3: the byte 0xEF is not UTF-8, probably the file is Latin-1",
    ),
    "NUL": ((LINES + "ab\0cd").encode(), "line 21, column 3: found a NUL byte, which is in no text; remove it"),
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(100), "this is a PNG image file, not text"),
    "binary": (bytes(range(1, 32)) * 40, "this is binary data"),
    "cut off": (LINES.encode() + "é".encode()[:1], "line 21, column 1: the file ends in the middle of a character"),
    "one line": (b"hello\n", "too small to split, a part of 6 characters cut 90/5/5 has nothing to predict"),
    "gzip by another name": (gzip.compress(LINES.encode()), "this is a gzip file, not text"),
}


@pytest.mark.parametrize("case", PLAIN)
def test_plain_text(case, tmp_path):
    data, expected = PLAIN[case]
    sentence = complaint(made(tmp_path, "bad.txt", data))
    assert "bad.txt" in sentence
    assert expected in sentence


def test_the_place_is_right_far_into_a_file_with_windows_line_ends(tmp_path):
    data = b"twelve chars\r\n" * 200_000 + b"abc\xe9\r\n"  # a chunk of a megabyte ends inside a line end somewhere
    assert "line 200001, column 4: the byte 0xE9" in complaint(made(tmp_path, "far.txt", data))


def test_a_damaged_gzip_file(tmp_path):
    data = gzip.compress(LINES.encode())
    assert "the gzip data is damaged" in complaint(made(tmp_path, "bad.txt.gz", data[:-20]))
    assert "the gzip data is damaged" in complaint(made(tmp_path, "not.txt.gz", LINES))
    for ending, kind, pack in ((".bz2", "bzip2", bz2.compress), (".xz", "xz", lzma.compress)):
        whole = made(tmp_path, f"good.txt{ending}", pack(LINES.encode()))
        assert "".join(TextFile(whole).pieces()) == LINES
        assert f"the {kind} data is damaged" in complaint(made(tmp_path, f"bad.txt{ending}", pack(LINES.encode())[:-9]))
        assert f"the {kind} data is damaged" in complaint(made(tmp_path, f"not.txt{ending}", LINES))


CSV = {
    "empty": (b"", {}, "the file is empty; a header line and rows are needed"),
    "header only": (b"text,language\n", {}, "there is a header (text, language) but no row below it"),
    "semicolons": (
        b"text;language\nhallo;de\n",
        {},
        "line 1: the columns are separated by ';', not by ','; save the table with ',' between its columns",
    ),
    "tabs": (b"text\tlanguage\na\tb\n", {}, "line 1: the columns are separated by a tab, not by ','"),
    "ragged": (
        ROWS.encode() + b"a, b,en\n",
        {},
        "line 42: found 3 cells where the header has 2 (text, language); put a cell that contains ',' in double quotes",
    ),
    "short last row": (ROWS.encode() + b"half", {}, "line 42: found 1 cells where the header has 2"),
    "empty text": (ROWS.encode() + b",en\n", {}, "line 42, column 'text': found an empty cell, expected text"),
    "empty class": (
        ROWS.encode() + b"word,\n",
        {"condition": "language"},
        "line 42, column 'language': found an empty cell, expected a class",
    ),
    "open quote": (ROWS.encode() + b'"never closed,en\nx,y\n', {}, "line 42: a double quote is opened in this row"),
    "quote inside": (ROWS.encode() + b'"a"b,en\n', {}, "line 42: text follows a closing double quote"),
    "same name twice": (b"text,text\na,b\n", {}, "line 1, column 2: the name 'text' is there twice"),
    "no name": (b"text,\na,b\n", {}, "line 1, column 2: the header has no name here"),
    "latin-1": (ROWS.encode() + b"caf\xe9,fr\n", {}, "line 42, column 4: the byte 0xE9 is not UTF-8"),
    "utf-16": (ROWS.encode("utf-16"), {}, "this is UTF-16, not UTF-8"),
    "single class": (
        b"text,language\n" + b"".join(b"w%d,en\n" % i for i in range(40)),
        {"condition": "language"},
        "column 'language': found the single class 'en'; a condition needs two or more",
    ),
    "one row": (b"text\nhello\n", {}, "too small to split, there is only one example for 3 parts"),
    "no classes": (
        b"text,id\n" + b"".join(b"word%d,%d\n" % (i, i) for i in range(100)),
        {"condition": "id"},
        "column 'id': found 100 different values in 100 rows, so this is no column of classes",
    ),
}


@pytest.mark.parametrize("case", CSV)
def test_csv(case, tmp_path):
    data, settings, expected = CSV[case]
    sentence = complaint(made(tmp_path, "bad.csv", data), **settings)
    assert "bad.csv" in sentence
    assert expected in sentence


GOOD = b'{"text": "hello %d", "kind": "a"}\n'
JSONL = {
    "empty": (b"", "there is no row in it"),
    "not json": (GOOD + b'{"text": "x"\n', "line 2, column 13: not JSON (Expecting ',' delimiter); write one whole"),
    "missing": (GOOD + b'{"kind": "b"}\n', "line 2, column 'text': there is no such value in this row"),
    "null": (GOOD + b'{"text": null}\n', "line 2, column 'text': found an empty cell, expected text"),
    "number": (GOOD + b'{"text": 3.5}\n', "line 2, column 'text': found a number (3.5), expected text; write it"),
    "list": (GOOD + b"[1]\n", "line 2: found a list, expected a"),
    "scalar": (b"3\n", "line 1: found a number, expected an object with named values"),
    "deep": (GOOD + b"[" * 100_000 + b"\n", "line 2: not usable JSON (nested too deeply)"),
    "endless number": (GOOD + b"1" * 5000 + b"\n", "line 2: not usable JSON"),
    "surrogate": (GOOD + b'{"text": "a\\ud800"}\n', "line 2, column 'text': character 2 is the lone surrogate U+D800"),
}


@pytest.mark.parametrize("case", JSONL)
def test_jsonl(case, tmp_path):
    data, expected = JSONL[case]
    sentence = complaint(made(tmp_path, "bad.jsonl", data.replace(b"%d", b"1")), column="text" if data else None)
    assert "bad.jsonl" in sentence
    assert expected in sentence


def test_json_must_be_a_list(tmp_path):
    assert "found an object, expected a list" in complaint(made(tmp_path, "bad.json", '{"text": "x"}'))
    assert "line 2, column 1: not JSON" in complaint(made(tmp_path, "bad.json", '["x",\n'))
    assert "the file is empty" in complaint(made(tmp_path, "bad.json", " "))


def test_parquet(tmp_path):
    assert "this is not a parquet file" in complaint(made(tmp_path, "bad.parquet", LINES))
    assert "this parquet file is damaged" in complaint(made(tmp_path, "bad.parquet", b"PAR1" + bytes(100)))


def test_parquet_damaged_anywhere_is_explained_or_read(tmp_path):
    frame = polars.DataFrame({"text": [f"row {i} of {i * i}" for i in range(2000)]})
    frame.write_parquet(tmp_path / "t.parquet", compression="zstd")
    good = (tmp_path / "t.parquet").read_bytes()
    for at in range(4, len(good) - 8, len(good) // 40):
        path = made(tmp_path, "bad.parquet", good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :])
        try:
            deque(open_source(path, DataConfig()).examples(), maxlen=0)
        except DataError as error:
            assert "bad.parquet" in str(error)  # noqa: PT017 (whether a flip shows depends on where it is)
    assert "damaged" in complaint(made(tmp_path, "cut.parquet", good[:-50]))


def test_a_bad_cell_in_row_one_million_is_found(tmp_path):
    rows = b"text,n\n" + b"some text,1\n" * 999_999 + b",1\n"
    source = open_source(made(tmp_path, "long.csv", rows), DataConfig(column="text"))
    with pytest.raises(DataError, match="line 1000001, column 'text': found an empty cell"):
        deque(source.examples(), maxlen=0)


def test_paths(tmp_path):
    assert "there is no such file" in complaint(tmp_path / "nowhere.txt")
    assert "cannot be opened" in complaint("bad\0path.txt")
    (tmp_path / "folder").mkdir()
    assert "there is no .txt file in this folder, nothing; put" in complaint(tmp_path / "folder")
    made(tmp_path / "folder", "a.csv", ROWS)
    assert "there is no .txt file in this folder, only .csv; name one of these" in complaint(tmp_path / "folder")
    made(tmp_path / "folder", "b.txt", "")
    assert "folder: the file is empty" in complaint(tmp_path / "folder")
    assert prepare(made(tmp_path, "ödd näme [1].txt", LINES), DataConfig()).facts["rows"] == 1


def test_too_long_names_the_first_example(tmp_path):
    path = made(tmp_path, "long.csv", ROWS + "a rather long text,en\n")
    assert (
        'long.csv, line 42: this example has 18 tokens, more than max_length = 10; choose settings={"too_long"'
        in complaint(path, max_length=10, column="text")
    )
    lines = made(tmp_path, "long.txt", "short\n\nshort too\n" + "x" * 30)
    assert "long.txt, line 4: this example has 30 tokens" in complaint(lines, examples="lines", max_length=10)


def test_options_that_cannot_be(tmp_path):
    table = made(tmp_path, "names.csv", "name,language,year\n" + "a,b,1\n" * 9)
    text = made(tmp_path, "text.txt", LINES)
    usage = [
        (table, {"column": "nam"}, "no column 'nam' for settings={\"column\": ...}; did you mean 'name'?"),
        (table, {"condition": "lang"}, "no column 'lang' for settings={\"data.condition\": ...}"),
        (table, {}, 'say which column holds the text with settings={"column": ...}; it has name, language, year'),
        (table, {"column": "name", "condition": "name"}, "cannot be both"),
        (table, {"column": "name", "condition": "year", "examples": "stream"}, "a stream has no classes"),
        (table, {"column": "name", "examples": "lines"}, 'settings={"examples": "lines"} is not possible here'),
        (text, {"examples": "rows"}, 'settings={"examples": "rows"} is not possible here'),
        (text, {"column": "text"}, "plain text has no columns"),
        (text, {"condition": "file"}, 'a stream has no classes; with settings={"examples": "lines"}'),
        (text, {"condition": "x", "examples": "lines"}, 'use settings={"data.condition": "file"}'),
        ("builtin:python-doc", {}, "no built-in data 'python-doc'; did you mean 'python-docs'?"),
        ({1, 2}, {}, "text cannot be read from a set; give a path"),
        (object(), {}, "text cannot be read from a object"),
    ]
    for source, settings, expected in usage:
        assert expected in complaint(source, UsageError, **settings)


def test_lists_and_arrays():
    assert "the list of texts is empty" in complaint([])
    assert "the list, row 2: found null, expected" in complaint(["a", None])
    assert "the list, row 2, column 'text': found an empty cell" in complaint(["a", ""])
    assert "the list, row 1: found float, expected texts" in complaint([1.5, 2.5])
    assert "is no text; give texts, or whole numbers" in complaint(np.ones((3, 3)))
    assert "found 2 axes where one row" in complaint([np.ones((2, 2), int)])


def test_a_full_disk(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setenv("UNROLLED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(SectionWriter, "add_text", full)
    sentence = complaint(made(tmp_path, "text.txt", LINES), CannotWrite)
    assert "the disk is full" in sentence
    assert "bytes are free; make room or set UNROLLED_CACHE" in sentence
    assert list((tmp_path / "cache" / "tokens").iterdir()) == []


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    blocked = made(tmp_path, "file", "x")
    monkeypatch.setenv("UNROLLED_CACHE", str(blocked))
    sentence = complaint(made(tmp_path, "text.txt", LINES), CannotWrite)
    assert "prepared data cannot be written" in sentence
    assert "UNROLLED_CACHE" in sentence
