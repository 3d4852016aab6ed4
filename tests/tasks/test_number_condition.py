"""Columns of numbers start a model of texts: scaled by training, obeyed, saved, and asked for by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import unrolled
from unrolled.core.batch import SOURCE
from unrolled.core.errors import DataError, UsageError
from unrolled.runs.run import Run

ROWS = [{"text": "ab"[i % 2] * 3 + str(i), "size": float(10 * (i % 2) + i / 100), "age": i % 7} for i in range(120)]
SETTINGS = {
    "column": "text", "condition": "size:number,age:number", "steps": 80, "d_state": 8, "d_embedding": 4, "lr": 0.03,
    "batch_size": 16, "warmup": 2, "threads": 1, "split": "60/20/20",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("numbers") / "run"
    return unrolled.train(ROWS, "next-token", "gru", out, settings=SETTINGS)


def test_numbers_are_scaled_by_training_data(run: Run) -> None:
    run.evaluate(split="valid")  # prepares the data
    section = run.task.sections["train"]
    condition = run.task.numbers
    assert condition is not None
    assert condition.names == ["size", "age"]
    vectors = np.concatenate(list(section.fields[SOURCE]))
    np.testing.assert_allclose(vectors.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(vectors.std(axis=0), 1, atol=1e-4)
    wanted = (np.array([10, 3]) - condition.mean) / condition.deviation
    np.testing.assert_allclose(condition.vector("10,3")[0], wanted, rtol=1e-5)
    np.testing.assert_allclose(condition.vector("age=3,size=10")[0], wanted, rtol=1e-5)


def test_the_condition_is_obeyed(run: Run, tmp_path: Path) -> None:
    again = unrolled.load(run.path)
    assert again.generate(condition="size=0,age=3", temperature=0)[0]["text"][:3] == "aaa"
    assert again.generate(condition="size=10,age=3", temperature=0)[0]["text"][:3] == "bbb"
    likely, not_so = again.score(["bbb3"], condition="10,3")[0], again.score(["bbb3"], condition="0,3")[0]
    assert likely["logp"] > not_so["logp"] + 3
    assert again.evaluate(ROWS)["nats"] == pytest.approx(
        -sum(line["logp"] for line in again.score(ROWS)) / sum(line["tokens"] for line in again.score(ROWS)), rel=1e-4
    )
    assert run.result["test"]["nats"] < min(parts["test"]["nats"] for parts in run.result["baselines"].values())


def test_what_is_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this run needs condition"):
        run.generate()
    with pytest.raises(UsageError, match="found size=3"):
        run.generate(condition="size=3")
    with pytest.raises(DataError, match="expected a number"):
        run.generate(condition="3,old")
    with pytest.raises(UsageError, match="expected age:number"):
        unrolled.train(ROWS, "next-token", "gru", tmp_path / "a", settings=SETTINGS | {"condition": "size:number,age"})
    with pytest.raises(DataError, match="column 'size': found"):
        bad = [*ROWS, {"text": "a", "size": "big", "age": 1}]
        unrolled.train(bad, "next-token", "gru", tmp_path / "b", settings=SETTINGS)
    with pytest.raises(UsageError, match="there is no column"):
        unrolled.train(ROWS, "next-token", "gru", tmp_path / "c", settings=SETTINGS | {"condition": "weight:number"})
