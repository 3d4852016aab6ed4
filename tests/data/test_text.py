"""Sources: many forms, one text; large files come in pieces."""

from __future__ import annotations

import gzip
import json

import numpy as np
import polars
import pytest
import torch

from unrolled.core.errors import UsageError
from unrolled.data.config import DataConfig
from unrolled.data.files import text_file as plain
from unrolled.data.files.text_file import TextFile
from unrolled.data.sources.text import open_source

TEXTS = ["héllo", "a, b", 'say "x"', "line one\nline two", "last"]
KINDS = ["x", "y", "x", "y", "x"]


def texts(source, **settings) -> list[str]:
    return [example.text for example in open_source(source, DataConfig(**settings)).examples()]


def stream(source, **settings) -> str:
    return "".join(open_source(source, DataConfig(**settings)).pieces())


def test_every_form_of_a_table_gives_the_same_examples(tmp_path):
    frame = polars.DataFrame({"text": TEXTS, "kind": KINDS})
    frame.write_csv(tmp_path / "t.csv")
    frame.write_csv(tmp_path / "t.tsv", separator="\t")
    frame.write_ndjson(tmp_path / "t.jsonl")
    frame.write_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.json").write_text(json.dumps(frame.to_dicts()))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    (tmp_path / "crlf.csv").write_bytes((tmp_path / "t.csv").read_bytes().replace(b"\n", b"\r\n"))
    (tmp_path / "bom.csv").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "t.csv").read_bytes())
    for source in [*tmp_path.iterdir(), frame, frame.to_dicts()]:
        found = list(open_source(source, DataConfig(condition="kind")).examples())
        assert [(example.text, example.label) for example in found] == list(zip(TEXTS, KINDS)), source


def test_line_numbers_count_lines_inside_quotes(tmp_path):
    (tmp_path / "t.csv").write_text('text\n"one\ntwo"\n\nthree\n')
    source = open_source(tmp_path / "t.csv", DataConfig())
    assert [example.number for example in source.examples()] == [2, 5]
    assert source.place(5).endswith("t.csv, line 5")
    assert "1 blank lines were skipped" in source.notes()[0]


def test_lists_arrays_tensors_and_series():
    assert texts(TEXTS) == texts(tuple(TEXTS)) == texts(np.array(TEXTS)) == texts(np.array(TEXTS, object)) == TEXTS
    assert texts(polars.Series("names", TEXTS)) == TEXTS
    assert texts(TEXTS, examples="lines") == TEXTS
    for numbers in (np.arange(5), torch.arange(5), [0, 1, 2, 3, 4], np.arange(5, dtype=np.uint8)):
        source = open_source(numbers, DataConfig())
        assert source.is_stream
        assert np.concatenate(list(source.pieces())).tolist() == [0, 1, 2, 3, 4]
    for numbers in (torch.tensor([[1, 2], [3, 4]]), [[1, 2], [3, 4]], [torch.tensor([1, 2]), np.array([3, 4])]):
        assert [row.tolist() for row in texts(numbers)] == [[1, 2], [3, 4]]
    assert [row.tolist() for row in texts([[1], [2, 3]])] == [[1], [2, 3]]


def test_auto_and_the_reason_for_it(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo")
    assert open_source(tmp_path / "a.txt", DataConfig()).chosen == "stream, chosen because plain text is a stream"
    assert open_source(["a"], DataConfig()).examples_are == "rows"
    assert open_source(tmp_path / "a.txt", DataConfig(examples="lines")).chosen == "lines, as asked for"
    assert stream(["a", "b"], examples="stream") == "a\nb\n"


def test_a_folder_is_read_in_the_order_of_names(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "1.txt").write_text("third\n")
    (tmp_path / "a.txt").write_text("first")
    (tmp_path / "a2.txt").write_text("")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"second\n"))
    (tmp_path / "ignored.md").write_text("no")
    (tmp_path / ".hidden.txt").write_text("no")
    assert stream(tmp_path) == "first\nsecond\nthird\n"
    source = open_source(tmp_path, DataConfig(examples="lines", condition="file"))
    found = [(example.text, example.label, source.place(example.number)) for example in source.examples()]
    assert sorted(found) == [
        ("first", "a", f"{tmp_path}/a.txt, line 1"),
        ("second", "b", f"{tmp_path}/b.txt.gz, line 1"),
        ("third", "1", f"{tmp_path}/b/1.txt, line 1"),
    ]
    assert source.notes() == [f"1 files in {tmp_path} that are not .txt were skipped"]


def test_marks_and_line_ends_are_made_one_and_noted(tmp_path):
    (tmp_path / "w.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\x0bstill\xe2\x80\xa8three\r\n")
    assert stream(tmp_path / "w.txt") == "one\ntwo\nthree\x0bstill\u2028three\n"
    assert texts(tmp_path / "w.txt", examples="lines") == ["one", "two", "three\x0bstill\u2028three"]
    source = open_source(tmp_path / "w.txt", DataConfig())
    list(source.pieces())
    assert [note.split(": ")[-1] for note in source.notes()] == [
        "the byte order mark at the start was removed",
        "Windows or old Mac line ends were read as plain line ends",
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_cutting_a_file_anywhere_changes_nothing(size, tmp_path, monkeypatch):
    text = "é漢👾 word\r\n\r\n  more words\n" * 5 + "end"
    (tmp_path / "t.txt").write_bytes(text.encode())
    monkeypatch.setattr(plain, "PIECE", size)
    file = TextFile(tmp_path / "t.txt")
    plain_text = text.replace("\r\n", "\n")
    assert "".join(file.pieces()) == plain_text
    assert list(file.lines()) == plain_text.split("\n")


def test_pieces_are_about_a_megabyte_and_end_before_text(tmp_path):
    (tmp_path / "t.txt").write_text("some words in a line\n\n" * 200_000)
    pieces = list(TextFile(tmp_path / "t.txt").pieces())
    assert max(map(len, pieces)) < 3 * plain.PIECE
    assert all(piece.endswith("\n") and not piece[0].isspace() for piece in pieces)
    (tmp_path / "t.txt").write_text("x" * 5_000_000)  # one huge line
    pieces = list(TextFile(tmp_path / "t.txt").pieces())
    assert sum(map(len, pieces)) == 5_000_000
    assert max(map(len, pieces)) < 3 * plain.PIECE
    assert [len(line) for line in TextFile(tmp_path / "t.txt").lines()] == [5_000_000]


def test_digests_follow_the_content(tmp_path):
    (tmp_path / "a.txt").write_text("one")
    before = open_source(tmp_path / "a.txt", DataConfig()).digest()
    assert open_source(tmp_path / "a.txt", DataConfig()).digest() == before
    (tmp_path / "a.txt").write_text("two")
    assert open_source(tmp_path / "a.txt", DataConfig()).digest() != before
    assert open_source(["ab", "c"], DataConfig()).digest() != open_source(["a", "bc"], DataConfig()).digest()


def test_a_text_that_is_not_in_a_list_is_not_taken_for_a_path() -> None:
    for text in ("first line\nsecond line", "word " * 2000):
        with pytest.raises(UsageError, match=r"\[text\]"):
            open_source(text, DataConfig())
