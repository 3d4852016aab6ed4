"""A format of files is one file: a reader of the user's own joins with --with and serves whatever reads tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import unrolled
from tests.commands import run_unrolled
from unrolled.core import discover
from unrolled.core.errors import DataError, UsageError
from unrolled.data import formats
from unrolled.data.reading import PairReading
from unrolled.data.sources.open_pairs import open_pairs

BARS = '''"""Cells between bars, a header line first."""

from unrolled.core.data_spec import ReaderSpec
from unrolled.core.errors import DataError


def read(file):
    first, *rows = ([cell.strip() for cell in line.split("|")] for line in file.lines())
    for number, row in enumerate(rows, start=2):
        if len(row) != len(first):
            raise DataError(f"{file.name}, line {number}: found {len(row)} cells, expected {len(first)}")
    return [dict(zip(first, row)) for row in rows]


READER = ReaderSpec(summary="cells between bars", suffixes=(".bars",), gives="table", read=read)
'''


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "bars.py"
    path.write_text(BARS, encoding="utf-8")
    yield path
    discover.readers.forget("bars")


def data(folder: Path, n: int = 60) -> Path:
    path = folder / "reviews.bars"
    lines = [f"{'good' if i % 2 else 'bad'} film number {i} | {'yes' if i % 2 else 'no'}" for i in range(n)]
    path.write_text("\n".join(["text | label", *lines]) + "\n", encoding="utf-8")
    return path


def test_a_reader_of_ones_own_is_trained_compared_and_predicted_with(tmp_path: Path, reader: Path) -> None:
    file = data(tmp_path)
    own = ["--with", reader]
    run_unrolled("train", file, "--task", "classify", "--model", "naive-bayes", "-o", tmp_path / "run", *own)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["model"], config["own_file"]) == ("naive-bayes", "bars.py")
    assert "add --with PATH/bars.py" in run_unrolled("predict", tmp_path / "run", file, code=3).stderr
    found = run_unrolled("predict", tmp_path / "run", file, *own).stdout.splitlines()
    assert len([line for line in found if "yes" in line or "no" in line]) >= 60
    words = ["--models", "naive-bayes", "--steps", "1", "--jobs", "1", "-o", tmp_path / "c", "--json"]
    table = json.loads(run_unrolled("compare", file, *words, *own).stdout)
    assert table["task"] == "classify"
    assert {row["label"] for row in table["rows"] if row["runs"]} >= {"naive-bayes"}
    best = unrolled.load(tmp_path / "c", own_file=reader, trained_on=file)
    assert best.evaluate(split="test")["tokens"] == best.task.size("test")


def test_it_serves_pairs_and_texts_too_and_its_errors_name_the_place(tmp_path: Path, reader: Path) -> None:
    assert formats.reader_of(Path("a.bars")) is None
    discover.readers.add_file(reader)
    file = data(tmp_path)
    assert formats.is_table(file) and ".bars" in formats.suffixes_giving("table")
    found = list(open_pairs(file, PairReading()))
    assert (found[1].source, found[1].target, found[1].place) == ("good film number 1", "yes", f"{file}, row 2")
    run = unrolled.train(file, model="ngram", task="next-token", column="text", out=tmp_path / "text", own_file=reader)
    assert run.evaluate(split="test") and run.task.facts()["rows"] == 60
    file.write_text(file.read_text() + "no bar\n")
    with pytest.raises(DataError, match=r"reviews.bars, line 62: found 1 cells, expected 2"):
        open_pairs(file, PairReading())


@pytest.mark.parametrize(("before", "after", "says"), [
    ('(".bars",)', '(".csv",)', "the readers 'bars' and 'csv' both claim .csv files"),
    ('(".bars",)', '("bars",)', r"bars.py, line 15: 'suffixes' must be like"),
    ('gives="table", read=read', 'gives="table"', r"bars.py, line 15: .*read"),
])  # fmt: skip
def test_a_wrong_declaration_is_told(tmp_path: Path, reader: Path, before: str, after: str, says: str) -> None:
    reader.write_text(BARS.replace(before, after), encoding="utf-8")
    with pytest.raises(UsageError, match=says):
        discover.readers.add_file(reader)
        formats.open_table(data(tmp_path))


def test_every_format_has_one_reader() -> None:
    found = {name: discover.readers.declaration(name) for name in discover.readers.names()}
    claimed = [suffix for spec in found.values() for suffix in spec.suffixes]
    assert len(claimed) == len(set(claimed)) and {".csv", ".parquet", ".ts", ".npz", ".wav", ".png", ".conll"} <= {
        *claimed
    }
    assert {*claimed} == {*formats.suffixes_giving("table"), *formats.suffixes_giving("examples")}
    assert all(spec.summary for spec in found.values())
