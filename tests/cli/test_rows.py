"""Answers beside the rows of a long table: those of a series at each of its rows, those of steps at their own."""

from __future__ import annotations

import csv
import errno
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

import unrolled
from unrolled.cli.rows import write
from unrolled.core.errors import CannotWrite, DataError, UsageError
from unrolled.core.task import Given, Rows, Task
from unrolled.core.verb import Result
from unrolled.data.sources.rows_beside import rows_in
from unrolled.runs.run import Run

TINY = {"steps": 2, "d_state": 4, "d_embedding": 4, "threads": 1}
IDS = tuple("bacdefgh")  # as they are met first
LENGTHS = (5, 3, 4, 2, 6, 3, 4, 5)


def long_table(path: Path, order: np.ndarray) -> Path:
    """Series of unlike lengths, a row a step, in any order."""
    random = np.random.default_rng(0)
    rows = [[name, t, f"{random.normal():.4f}", 10 * IDS.index(name) + t, IDS.index(name)]
            for name, n in zip(IDS, LENGTHS) for t in range(n)]  # fmt: skip
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["id", "t", "v", "clean", "y"], *(rows[i] for i in order)])
    return path


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("long")
    mixed = np.random.default_rng(1).permutation(np.arange(1, sum(LENGTHS)))
    return long_table(folder / "sorted.csv", np.arange(sum(LENGTHS))), long_table(
        folder / "mixed.csv", np.array([0, *mixed])
    )


@pytest.fixture(scope="module")
def runs(tables: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("runs")
    columns = {"regress": {"target": "y", "column": "v"}, "denoise": {"target": "clean", "column": "v"}}
    return {
        task: unrolled.train(tables[0], task=task, model="gru", out=folder / task, settings=TINY | own)
        for task, own in columns.items()
    }


def written(run: Run, table: Path, out: Path) -> list[dict[str, str]]:
    write(str(out), str(table), run.each("predict", str(table)), run.task)
    with out.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("which", [0, 1], ids=["sorted", "mixed"])
def test_every_row_keeps_its_cells_and_has_its_answer(runs, tables, tmp_path, which):
    with tables[which].open(newline="", encoding="utf-8") as file:
        given = list(csv.DictReader(file))
    series = {name: sorted((row for row in given if row["id"] == name), key=lambda row: int(row["t"])) for name in IDS}
    for task, run in runs.items():
        found = written(run, tables[which], tmp_path / f"{task}.csv")
        assert [{name: row[name] for name in given[0]} for row in found] == given
        for name, rows in series.items():
            [said] = run.predict([np.array([[float(row["v"])] for row in rows], np.float32)])
            own = [float(row["prediction"]) for row in found if row["id"] == name]
            times = [int(row["t"]) for row in found if row["id"] == name]
            expected = np.ravel(said["prediction"])[times] if task == "denoise" else [said["prediction"]] * len(rows)
            assert own == pytest.approx(expected, abs=1e-5)


def test_lines_tell_the_id_of_their_series(runs, tables, tmp_path):
    run, table = runs["regress"], tables[1]
    lines = run.predict(str(table))
    with table.open(newline="", encoding="utf-8") as file:
        met = list(dict.fromkeys(row["id"] for row in csv.DictReader(file)))
    assert [line["id"] for line in lines] == met
    write(str(tmp_path / "out.jsonl"), str(table), run.each("predict", str(table)), run.task)
    kept = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["id"] for line in kept] == met


def test_what_is_no_table_has_no_ids(runs, tmp_path):
    np.savez(tmp_path / "x.npz", v=np.zeros((2, 3, 1), np.float32))
    lines = runs["regress"].predict(tmp_path / "x.npz")
    assert len(lines) == 2 and set(lines[0]) == {"prediction"}


class Line(Task):
    """A task that reads tables as they are."""

    def __init__(self) -> None: ...

    def rows_in(self, path: Path) -> Rows | None:
        return rows_in(path)


def alone(lines: Iterable[Result]) -> Iterator[tuple[Given, Result]]:
    return ((Given(None), line) for line in lines)


def test_a_planted_link_is_not_followed(tmp_path):
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    (tmp_path / "in.csv").write_text("a,b\n1,2\n")
    for name in ("out.csv.part", ".out.csv.tmp"):
        (tmp_path / name).symlink_to(precious)
    write(str(tmp_path / "out.csv"), str(tmp_path / "in.csv"), alone([{"prediction": "x"}]), Line())
    assert precious.read_text() == "mine"
    assert (tmp_path / "out.csv").read_text() == "a,b,prediction\n1,2,x\n"


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_what_was_there_stays_until_all_is_written(tmp_path, ending):
    (tmp_path / "in.csv").write_text("a,b\n1,2\n3,4\n")
    out = tmp_path / f"out.{ending}"
    out.write_text("old")

    def said():
        yield {"prediction": "x"}
        raise DataError("the second cannot be predicted")

    with pytest.raises(DataError):
        write(str(out), str(tmp_path / "in.csv"), alone(said()), Line())
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", out.name]


def test_a_full_disk_is_told_with_the_bytes_needed(tmp_path, monkeypatch):
    (tmp_path / "in.csv").write_text("a,b\n" + "1,2\n" * 100)
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data) if len(data) < 60 else fail(errno.ENOSPC))
    with pytest.raises(CannotWrite, match=r"out\.csv cannot be written \(No space left.*bytes are needed and .* free"):
        write(str(tmp_path / "out.csv"), str(tmp_path / "in.csv"), alone([{"prediction": "xyz"}] * 100), Line())
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def fail(number: int) -> int:
    raise OSError(number, os.strerror(number))


CELLS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "＝1"]
KEPT = ["-3.5", "+1e-5", "-1,5", "-12%", "word", "1=1", ""]


def test_formulas_are_quoted_on_request_and_numbers_are_kept(tmp_path):
    table, out = tmp_path / "in.csv", tmp_path / "out.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["=name", "b"], *([cell, "x"] for cell in CELLS + KEPT)])
    for quoted in (False, True):
        said = ({"prediction": cell, "p": -0.5} for cell in CELLS + KEPT)
        write(str(out), str(table), alone(said), Line(), quote_formulas=quoted)
        with out.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        sign = "'" if quoted else ""
        assert header == [f"{sign}=name", "b", "prediction", "p"]
        expected = [sign + cell for cell in CELLS] + KEPT
        assert [row[0] for row in rows] == [row[2] for row in rows] == expected
        assert {row[3] for row in rows} == {"-0.5"}


def test_quoting_is_for_tables(tmp_path):
    with pytest.raises(UsageError, match="quote-formulas"):
        write(str(tmp_path / "out.jsonl"), "-", iter([]), Line(), quote_formulas=True)
