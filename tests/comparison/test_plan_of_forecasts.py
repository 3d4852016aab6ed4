"""Which models a comparison of forecasts has."""

from __future__ import annotations

import pytest

from unrolled.comparison.config import CompareConfig
from unrolled.comparison.plan import baseline_jobs, chosen_models
from unrolled.core import discover
from unrolled.core.task import Task
from unrolled.data.config import DataConfig


@pytest.fixture(scope="module")
def task() -> Task:
    module = discover.tasks.load("forecast")
    found: Task = module.Task(module.Config(horizon=6), DataConfig())
    found.prepare("builtin:air-passengers")
    return found


def test_classical_models_are_always_rows(task: Task) -> None:
    """Beside named models too, where they can be selected; what is not fitted is a baseline."""
    assert chosen_models(CompareConfig(models="gru"), task, "forecast") == ["gru", "ar", "ets", "memoryless", "theta"]
    quick = chosen_models(CompareConfig(preset="quick"), task, "forecast")
    assert {"ar", "ets", "theta", "linear-map", "gru"} <= {*quick}
    assert "naive" not in quick
    labels = [job.label for job in baseline_jobs(task)]
    assert labels == ["last value", "seasonal naive", "drift", "mean"]
