"""A table in each file: its rows are a series, its folder the class."""

from __future__ import annotations

import numpy as np
import pytest

from unrolled.core.errors import DataError, MissingColumn
from unrolled.data.look import look
from unrolled.data.reading import Reading
from unrolled.data.sources.labelled_guess import guess_answers
from unrolled.data.sources.open_labelled import open_labelled


@pytest.fixture
def folder(tmp_path):
    for name, rate in (("walk", 1), ("run", 3)):
        (tmp_path / name).mkdir()
        for i in range(4):
            rows = "".join(f"{t},{t * rate + i},{-t}\n" for t in range(5 + i))
            (tmp_path / name / f"{i}.csv").write_text("time,x,y\n" + rows)
    return tmp_path


def test_each_file_is_a_series_of_its_folder(folder):
    assert guess_answers(look(folder), Reading()) == "class"
    source = open_labelled(folder, Reading(), "class")
    found = {example.place.removeprefix(f"{folder}/"): example for example in source}
    assert len(found) == 8
    assert found["run/2.csv"].answer == "run"
    np.testing.assert_array_equal(found["run/2.csv"].input, [[3 * t + 2, -t] for t in range(7)])
    assert any("every file is a series with the columns x, y as channels" in note for note in source.notes)


def test_columns_are_read_by_name(folder):
    (folder / "run" / "0.csv").write_text("y,time,x\n" + "".join(f"{-t},{t},{3 * t}\n" for t in range(5)))
    source = open_labelled(folder, Reading(column="x"), "class")
    inputs = {example.place: example.input for example in source}
    np.testing.assert_array_equal(inputs[str(folder / "run" / "0.csv")], [[3 * t] for t in range(5)])


def test_a_saved_reading_reads_files_without_classes(folder, tmp_path_factory):
    new = tmp_path_factory.mktemp("new")
    (new / "a.csv").write_text("time,x,y\n0,5,6\n1,7,8\n")
    settled = open_labelled(folder, Reading(), "class").reading
    for source in (new, new / "a.csv"):
        assert [example.input.tolist() for example in open_labelled(source, settled, "none")] == [[[5, 6], [7, 8]]]


@pytest.mark.parametrize(("name", "content", "error", "says"), [
    ("run/0.csv", "time,x\n0,1\n", DataError, "'y'"),
    ("walk/3.csv", "time,x\n0,1\n", MissingColumn, "'y'"),
    ("walk/3.csv", "time,x,y,z\n0,1,2,3\n", DataError, "'z'"),
    ("run/0.csv", "time,x,y\n", DataError, "no row"),
    ("run/0.csv", "time,x,y\n0,1,2\n1,two,3\n", DataError, "line 3, column 'x'"),
    ("run/0.csv", "time,x,y\n0,1,2\n1,,3\n", DataError, "line 3, column 'x'"),
    ("loose.csv", "time,x,y\n0,1,2\n", DataError, "folder named"),
])  # fmt: skip
def test_bad_files_are_named(folder, name, content, error, says):
    (folder / name).write_text(content)
    with pytest.raises(error) as caught:
        list(open_labelled(folder, Reading(), "class"))
    assert name in str(caught.value)
    assert says in str(caught.value)


def test_tables_without_folders_of_classes_are_not_guessed_to_be_series(tmp_path):
    for i in range(3):
        (tmp_path / f"{i}.csv").write_text(f"date,x{i}\n2024-01-01,1\n2024-01-02,2\n")
    assert guess_answers(look(tmp_path), Reading()) is None
    with pytest.raises(DataError, match="name one of these files"):
        open_labelled(tmp_path, Reading(), "class")
