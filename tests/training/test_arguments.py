"""Settings as keyword arguments: the same as in a table, each in one place, misspelt ones answered."""

from __future__ import annotations

from pathlib import Path

import pytest

import unrolled
from tests.small import LINES
from unrolled.comparison.api import make_plan
from unrolled.core.errors import UsageError
from unrolled.runs.config import given_once

TINY = {"steps": 2, "d_state": 3, "d_embedding": 4, "warmup": 1, "threads": 1, "batch_size": 4}


def test_arguments_are_settings(tmp_path: Path) -> None:
    one = unrolled.train(LINES, model="elman", out=tmp_path / "one", **TINY)
    two = unrolled.train(LINES, model="elman", out=tmp_path / "two", settings=TINY)
    both = unrolled.train(LINES, model="elman", out=tmp_path / "both", settings={"model.d_state": 3},
                          **{key: value for key, value in TINY.items() if key != "d_state"})  # fmt: skip
    assert one.config.model_settings["d_state"] == 3
    assert one.result["test"] == two.result["test"] == both.result["test"]


def test_a_setting_is_given_once() -> None:
    with pytest.raises(UsageError, match="'steps' is given twice, in settings and as an argument"):
        unrolled.train(LINES, settings={"steps": 3}, steps=3)
    with pytest.raises(UsageError, match="'steps' is given twice"):
        unrolled.compare(LINES, settings={"steps": 3}, steps=3)


@pytest.mark.parametrize(("name", "meant"), [("modle", "model"), ("d_stat", "d_state"), ("batchsize", "batch_size")])
def test_a_misspelt_argument_is_answered_with_the_nearest(tmp_path: Path, name: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"there is no setting '{name}'; did you mean '[a-z.]*{meant}'"):
        unrolled.train(LINES, model="gru", out=tmp_path / "run", **{name: 3})
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_a_comparison_takes_arguments_beside_settings(tmp_path: Path) -> None:
    few = {key: value for key, value in TINY.items() if key not in ("steps", "d_state", "batch_size")}
    settings = {"elman.d_state": 3, "batch_size": 4, "models": "elman"}
    found = unrolled.compare(LINES, out=tmp_path / "c", steps=2, jobs=1, settings=settings, **few)
    assert "elman" in [row["label"] for row in found.rows]
    config = found.run("elman-0").config
    assert (config.model_settings["d_state"], config.batching.batch_size, config.budget.steps) == (3, 4, 2)
    with pytest.raises(UsageError, match="did you mean"):
        unrolled.compare(LINES, out=tmp_path / "d", modls="elman", steps=2)


def test_time_is_a_duration_or_the_column_of_times(tmp_path: Path) -> None:
    rows = [{"when": f"2024-01-{i + 1:02}", "seen": f"2023-01-{i + 1:02}", "value": i % 5 + i / 9} for i in range(31)]
    run = unrolled.train(rows, "forecast", "naive", tmp_path / "run", time="when", horizon=2)
    assert run.task.reading.time == "when"
    assert run.config.budget.time is None
    asked = given_once(None, {"time": "when", "models": "naive", "horizon": 2, "steps": 1})
    assert make_plan(rows, "forecast", asked).settings["series.time"] == "when"
    with pytest.raises(UsageError, match=r'no setting .*time.* \(use time="5m" to limit the training time\)'):
        unrolled.train(LINES, model="gru", out=tmp_path / "other", time="five minutes")
    with pytest.raises(UsageError, match=r"there is no column 'date' for .*series.time"):
        unrolled.train(rows, "forecast", "naive", tmp_path / "none", time="date", horizon=2)
