"""Tables with the same columns in a folder are one table; each row keeps its place."""

from __future__ import annotations

import pytest

from unrolled.core.errors import DataError, UnrolledError
from unrolled.data.look import look
from unrolled.data.reading import Reading
from unrolled.data.sources.folder_table import folder_table
from unrolled.data.sources.labelled_guess import guess_answers
from unrolled.data.sources.open_labelled import open_labelled


@pytest.fixture
def folder(tmp_path):
    for name, label in (("b", "good"), ("a", "bad")):
        rows = "".join(f"{label} film {i},{label}\n" for i in range(12))
        (tmp_path / f"{name}.csv").write_text("text,label\n" + rows)
    (tmp_path / "README.md").write_text("about films")
    return tmp_path


def test_rows_come_in_the_order_of_the_names_with_their_places(folder):
    (folder / "b.csv").write_text("label,text\ngood,a film\n")
    table = folder_table(folder)
    assert table is not None
    rows = list(table.rows(["text", "label"]))
    assert [cells for _, cells in rows][-2:] == [("bad film 11", "bad"), ("a film", "good")]
    assert table.place(rows[-1][0]) == f"{folder}/b.csv, line 2"
    assert table.place(rows[0][0]) == f"{folder}/a.csv, line 2"


def test_a_task_is_guessed_and_examples_are_read(folder):
    assert guess_answers(look(folder), Reading()) == "class"
    source = open_labelled(folder, Reading(), "class")
    assert [example.answer for example in source] == ["bad"] * 12 + ["good"] * 12
    assert any("2 tables with the same columns" in note for note in source.notes)


def test_the_digest_is_that_of_all_tables(folder):
    before = folder_table(folder).digest()
    (folder / "b.csv").write_text("text,label\nother,good\n")
    assert folder_table(folder).digest() != before


def test_a_bad_row_is_named_with_its_file(folder):
    (folder / "b.csv").write_text("text,label\na film,good\nhalf\n")
    with pytest.raises(DataError, match=r"b\.csv, line 3"):
        list(open_labelled(folder, Reading(), "class"))


@pytest.mark.parametrize(("name", "content"), [
    ("c.csv", "words,label\na,b\n"), ("c.txt", "a text"), ("c.jsonl", '{"text": "a", "label": "b"}\n'), ("c.csv", ""),
    ("inner/c.csv", "text,label\na,b\n"),
])  # fmt: skip
def test_folders_of_other_things_are_not_joined(folder, name, content):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(content)
    assert folder_table(folder) is None
    with pytest.raises(UnrolledError):
        list(open_labelled(folder, Reading(target="label"), "tags"))


def test_names_of_splits_are_splits(folder):
    (folder / "a.csv").rename(folder / "train.csv")
    (folder / "b.csv").rename(folder / "test.csv")
    assert folder_table(folder) is None
    assert {example.part for example in open_labelled(folder, Reading(), "class")} == {"train", "test"}
