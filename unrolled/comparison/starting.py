"""Rows of a comparison for a saved run: its model from scratch, with the
input vectors of the run alone, with all of its weights frozen, and fine-tuned."""

from __future__ import annotations

from typing import Any

from unrolled.comparison.config import CompareConfig, fractions_of
from unrolled.comparison.plan import Job
from unrolled.core import discover
from unrolled.core.errors import UsageError
from unrolled.core.spec import Asks, misfit
from unrolled.runs.config import RunConfig
from unrolled.runs.parts import ALL_BUT_HEAD
from unrolled.training.starting import inherited


def require_fit(saved: RunConfig, path: str, asks: Asks, task: str) -> None:
    """The model of the saved run must be one for the task."""
    if why := misfit(discover.model(saved.model), asks):
        names = [name for name in discover.models.names() if misfit(discover.model(name), asks) is None]
        raise UsageError(
            f"{path}: its model '{saved.model}' does not fit the task '{task}': {why}; models that fit: "
            + ", ".join(names)
        )


def jobs_from(asked: CompareConfig, saved: RunConfig, own: dict[str, Any]) -> list[Job]:
    """Each way with every fraction and seed; `own` are settings of that model alone. All have the sizes and the tokens
    of the saved run; from scratch, the vocabulary is fitted anew."""
    same, path, fractions = inherited(saved, saved.model), str(asked.from_run), fractions_of(asked.fractions)
    ways: dict[str, dict[str, Any]] = {
        "from scratch": {},
        "vectors only": {"start.from_run": path, "start.take": ["embedding"]},
        "frozen": {"start.from_run": path, "start.freeze": [ALL_BUT_HEAD]},
        "fine-tuned": {"start.from_run": path},
    }
    if saved.ends.input == "one-hot":  # which has no weights
        del ways["vectors only"]
    return [
        Job(
            folder=f"{saved.model}-{way.replace(' ', '-')}{'' if len(fractions) == 1 else f'-{fraction:.4g}'}-{seed}",
            label=f"{saved.model} {way}{'' if len(fractions) == 1 else f' {fraction:.4g}'}", kind="model",
            model=saved.model, seed=seed, fraction=fraction, settings={**same, **own, **settings},
        )
        for seed in range(asked.seeds) for fraction in fractions for way, settings in ways.items()
    ]  # fmt: skip
