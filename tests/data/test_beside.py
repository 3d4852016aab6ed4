"""What lies beside a file to train on is used where an archive gives it, and is otherwise named."""

from __future__ import annotations

import pytest

from unrolled.data.files.beside import with_beside
from unrolled.runs.build import make_task
from unrolled.runs.config import RunConfig

TS = "@classLabel true a b\n@data\n"


def series(path, n):
    lines = [f"{i},{i + 1},{i * 2}:{'ab'[i % 2]}" for i in range(n)]
    path.write_text(TS + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def prepared(source):
    task = make_task(RunConfig(task="classify"))
    task.prepare(source)
    return task


@pytest.mark.parametrize("as_path", [True, False])
def test_the_test_file_of_an_archive_is_the_test_data(tmp_path, as_path):
    train, _ = series(tmp_path / "Gun_TRAIN.ts", 20), series(tmp_path / "Gun_TEST.ts", 7)
    task = prepared(train if as_path else str(train))
    assert task.size("test") == 7 and task.size("train") + task.size("valid") == 20
    assert "Gun_TEST.ts next to Gun_TRAIN.ts is used as test data" in task.facts()["notes"]
    alone = prepared(series(tmp_path / "Other_TRAIN.ts", 20))
    assert sum(alone.size(split) for split in alone.splits()) == 20
    assert not any("beside" in note for note in alone.facts()["notes"])


def test_another_file_of_the_archive_is_read_alone(tmp_path):
    train, test = series(tmp_path / "Gun_TRAIN.ts", 20), series(tmp_path / "Gun_TEST.ts", 7)
    task = prepared(train)
    assert with_beside(test) == (test, [])
    assert len(list(task._opened(train, "class"))) == 20  # to evaluate on one file is to read that file


def test_a_test_table_that_is_not_used_is_named(tmp_path):
    for name in ("train.csv", "test.csv", "notes.csv"):
        rows = [f"word {i},{'xy'[i % 2]}" for i in range(30)]
        (tmp_path / name).write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    task = prepared(tmp_path / "train.csv")
    assert sum(task.size(split) for split in task.splits()) == 30
    [note] = [note for note in task.facts()["notes"] if "next to" in note]
    assert note.startswith("test.csv next to train.csv is not used")
