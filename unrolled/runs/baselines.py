"""The baselines of a task: models that every figure is set beside, fitted on the same training data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from unrolled.core.task import Model, Task
from unrolled.runs import closed_form
from unrolled.runs.build import make_model
from unrolled.runs.config import Budget, RunConfig

Figures = TypeVar("Figures")


def measure_baselines(config: RunConfig, task: Task, measure: Callable[[Model], Figures]) -> dict[str, Figures]:
    """What `measure` says of each baseline, by label; one is in memory at a time.

    Each learns from validation data what a trained model does (how sure to be), and the task forgets it again.
    The budget is the run's alone.
    """
    results, before = {}, task.describe()
    for baseline in task.baselines():
        own = {
            "model": baseline.model,
            "model_settings": dict(baseline.settings),
            "members": 1,
            "ensemble": [],
            "budget": Budget(),
        }
        chosen = config.model_copy(update=own)
        model = make_model(chosen, task)
        closed_form.fit(chosen, task, model)
        task.after_training(model)
        results[baseline.label] = measure(model)
        task.recall(before)
    return results
