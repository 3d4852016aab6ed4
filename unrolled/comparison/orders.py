"""The orders of a comparison: what a worker needs to know of each run, as JSON values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.comparison.plan import ENSEMBLE, RANKED, Job, Plan
from unrolled.core import discover
from unrolled.core.errors import UnrolledError
from unrolled.data.given_splits import names_of_sources
from unrolled.runs.results import RESULT, read_result
from unrolled.runs.storage.directory import RunDirectory

SHORT = 300.0  # seconds; a shorter run is looked at more often, on less, so that there is a curve to see
LOOK_OFTEN = {"evaluate_every": 100, "evaluate_tokens": 30_000}

Order = dict[str, Any]


class Given(NamedTuple):
    """What the reader of this very command named: no run is given a path that only the plan holds."""

    data: Any
    own_file: str | Path | None
    resumed: bool = False  # there may be results of before


def is_done(folder: Path, job: Job) -> bool:
    """Whether a run has its results, which are written last."""
    return (folder / job.folder / RESULT).exists()


def results_in(folder: Path, plan: Plan) -> dict[str, dict[str, Any]]:
    """The results of the runs so far, without damaged ones, which are reported where they are needed."""
    found = {}
    for job in plan.jobs:
        if is_done(folder, job):
            with suppress(UnrolledError):
                found[job.folder] = read_result(RunDirectory.open(folder / job.folder))
    return found


def too_short(plan: Plan, results: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Rows whose runs made fewer steps in their time than are worth ranking, and how many; none where that is so of
    all models, of a plain comparison, and of runs that end by themselves or after a number of steps."""
    if plan.asked.steps is not None or plan.asked.plain or plan.asked.match == "none":
        return {}
    steps: dict[str, list[float]] = {}
    for job in plan.jobs:
        if job.kind == "model" and (job.members or job.fold is None) and job.folder in results:
            made = math.inf if job.solved else results[job.folder]["steps"] / max(len(job.members), 1)
            steps.setdefault(job.label, []).append(made)
    means = {label: sum(each) / len(each) for label, each in steps.items()}
    few = {label: mean for label, mean in means.items() if mean < RANKED}
    return few if len(few) < len(means) else {}


def order_of(folder: Path, plan: Plan, given: Given, job: Job) -> Order:
    """All of it but the time."""
    settings = {**plan.settings, **job.settings, "seed": job.seed, "fraction": job.fraction}
    settings["threads"] = plan.threads
    if job.kind == "model":
        if plan.asked.steps:
            settings = {"budget.steps": plan.asked.steps} | settings
        if plan.asked.plain:
            settings["plain"] = True
            settings = LOOK_OFTEN | settings if plan.share is not None and plan.share < SHORT else settings
    own = given.own_file if job.kind == ENSEMBLE else discover.needed(given.own_file, job.model)
    return {
        "folder": job.folder, "out": str(folder / job.folder), "data": _data(given), "task": plan.task,
        "trained": job.trained, "model": job.model, "settings": settings, "own_file": own and str(own),
        "members": [str(folder / member) for member in job.members],
        "candidates": _candidates(folder, plan) if job.kind == ENSEMBLE else None,
        "baselines": {} if job.kind == "baseline" else _baselines(folder, plan, job.fold),
    }  # fmt: skip


def _candidates(folder: Path, plan: Plan) -> dict[str, Any]:
    """What an ensemble is made of: all runs on all data, with those of their folds, and in how many seconds."""
    few = too_short(plan, results_in(folder, plan))
    done = [
        job
        for job in plan.jobs
        if job.fold is None and job.kind != ENSEMBLE and job.label not in few and is_done(folder, job)
    ]
    most = max((job.fraction for job in done), default=1.0)
    runs = [job for job in done if job.fraction == most]
    folds = [[str(folder / member) for member in job.members] for job in runs]
    seconds = None if plan.asked.steps is not None else plan.for_ensemble
    return {"runs": [str(folder / job.folder) for job in runs], "folds": folds, "seconds": seconds}


def _data(given: Given) -> str | dict[str, str]:
    """What is in an order: names, or that the data is in this process."""
    return names if len(names := names_of_sources(given.data)) > 1 else names["train"]


def _baselines(folder: Path, plan: Plan, fold: int | None) -> dict[str, Any]:
    """The figures of the baselines that finished, on the same fold, as every run keeps them."""
    figures = {}
    for job in plan.jobs:
        if job.kind == "baseline" and job.fold == fold and is_done(folder, job):
            result = read_result(RunDirectory.open(folder / job.folder))
            figures[job.label] = {split: result[split] for split in ("valid", "test") if split in result}
    return figures
