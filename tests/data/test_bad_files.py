"""Every bad file is answered by one sentence with its place: file, line, column, what was found, what to do.

Most bad files are in the corpus of tests/faults; here is what cannot be told in a line, and what comes from memory.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import os
from collections import deque

import numpy as np
import polars
import pytest

from unrolled.core.errors import CannotWrite, DataError, UsageError
from unrolled.data.config import DataConfig
from unrolled.data.files.panics import without_panic
from unrolled.data.files.text_file import TextFile
from unrolled.data.prepare import prepare
from unrolled.data.sources.text import open_source
from unrolled.data.storage.stored import TokenWriter

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


def test_the_place_is_right_far_into_a_file_with_windows_line_ends(tmp_path):
    data = b"caf\xc3\xa9 twelve\r\n" + b"twelve chars\r\n" * 199_999 + b"abc\xe9\r\n"  # a chunk ends inside a line end
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
    assert "no such file" in complaint(tmp_path / "nowhere.txt")
    assert "cannot be opened" in complaint("bad\0path.txt")
    (tmp_path / "folder").mkdir()
    assert "the folder is empty; put" in complaint(tmp_path / "folder")
    made(tmp_path / "folder", "a.csv", ROWS)
    assert "there are no .txt files in this folder; name one of its files: a.csv" in complaint(tmp_path / "folder")
    made(tmp_path / "folder", "b.txt", "")
    assert "folder: the file is empty" in complaint(tmp_path / "folder")
    assert prepare(made(tmp_path, "ödd näme [1].txt", LINES), DataConfig()).facts["rows"] == 1


def test_too_long_names_the_first_example(tmp_path):
    path = made(tmp_path, "long.csv", ROWS + "a rather long text,en\n")
    assert "long.csv, line 42: this example has 18 tokens, more than max_length = 10; choose too_long=" in complaint(
        path, max_length=10, column="text"
    )
    lines = made(tmp_path, "long.txt", "short\n\nshort too\n" + "x" * 30)
    assert "long.txt, line 4: this example has 30 tokens" in complaint(lines, examples="lines", max_length=10)


def test_options_that_cannot_be(tmp_path):
    table = made(tmp_path, "names.csv", "name,language,year\n" + "a,b,1\n" * 9)
    text = made(tmp_path, "text.txt", LINES)
    usage = [
        (table, {"column": "nam"}, "no column 'nam' for column=...; did you mean 'name'?"),
        (table, {"condition": "lang"}, "no column 'lang' for settings={\"data.condition\": ...}"),
        (table, {}, "or which column to predict with target=...; it has name, language, year"),
        (table, {"column": "name", "condition": "name"}, "cannot be both"),
        (table, {"column": "name", "condition": "year", "examples": "stream"}, "a stream has no classes"),
        (table, {"column": "name", "examples": "lines"}, 'examples="lines" cannot be used'),
        (text, {"examples": "rows"}, 'examples="rows" cannot be used'),
        (text, {"column": "text"}, "plain text has no columns"),
        (text, {"condition": "file"}, 'a stream has no classes; with examples="lines"'),
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
    assert "is not text; give texts, or integers" in complaint(np.ones((3, 3)))
    assert "found 2 axes, expected one row" in complaint([np.ones((2, 2), int)])


def test_a_full_disk(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setenv("UNROLLED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(TokenWriter, "add_text", full)
    sentence = complaint(made(tmp_path, "text.txt", LINES), CannotWrite)
    for words in (
        "tokens cannot be written (No space left on device)",
        "are free",
        "set UNROLLED_CACHE to a directory",
    ):
        assert words in sentence
    assert list((tmp_path / "cache" / "tokens").iterdir()) == []


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    blocked = made(tmp_path, "file", "x")
    monkeypatch.setenv("UNROLLED_CACHE", str(blocked))
    sentence = complaint(made(tmp_path, "text.txt", LINES), CannotWrite)
    assert "tokens cannot be written" in sentence
    assert "UNROLLED_CACHE" in sentence


def test_a_panic_of_a_library_is_not_shown(tmp_path, capfd):
    with pytest.raises(ValueError, match="damaged"), without_panic():
        os.write(2, b"thread '<unnamed>' panicked at crates/x.rs\n")
        raise ValueError("damaged")
    assert capfd.readouterr().err == ""
    with without_panic():
        os.write(2, b"a warning\n")
    assert capfd.readouterr().err == "a warning\n"
