"""The table of a comparison: from run directories to rows, ranked on validation data, and what may be said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.comparison.failures import Failure, of_other_data
from unrolled.comparison.orders import too_short
from unrolled.comparison.plan import ENSEMBLE, RANKED, Job, Plan
from unrolled.comparison.statistics import interval, is_better
from unrolled.comparison.units import compare_units
from unrolled.comparison.verdict import make_verdict
from unrolled.core import discover
from unrolled.core.errors import UnrolledError
from unrolled.core.metric import Metric, metrics_in
from unrolled.report.words import rounded_up, time_words
from unrolled.runs.results import read_result
from unrolled.runs.selection import rank
from unrolled.runs.storage.directory import RunDirectory

SPARE = 0.25  # of its share that a run needs in addition, at least, where the share was too short
NAMES = ("receptive_field", "serial_depth", "tick_microseconds", "memory_megabytes")


def make_table(
    folder: Path,
    plan: Plan,
    command: str,
    failed: Mapping[str, Failure],
    finished: bool,
    needs: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Everything that the terminal, the report and scripts show."""
    task = discover.tasks.load(plan.task).Task
    found = {job.folder: run for job in plan.jobs if (run := _finished(folder / job.folder)) is not None}
    others = of_other_data(found)
    failed, found = {**failed, **others}, {name: run for name, run in found.items() if name not in others}
    first = next(iter(found.values())).read_json("result.json") if found else {}
    figures, metrics = first.get("figures", task.FIGURES), metrics_in(first, task.SCORE)  # settings may change a task's
    metric = metrics[0]
    rows, measured = [], dict[str, list[RunDirectory]]()
    few = too_short(plan, {name: run.read_json("result.json") for name, run in found.items()})
    for label in dict.fromkeys(job.label for job in plan.jobs):
        jobs = [job for job in plan.jobs if job.label == label]
        done = [job for job in jobs if job.folder in found and (job.members or job.fold is None)]
        if jobs[0].kind == ENSEMBLE and not done and not any(job.folder in failed for job in jobs):
            continue  # none was better
        if label in few:
            needs = {**(needs or {}), **_for_enough([found[job.folder] for job in done], done, few[label])}
            done = []
        row = _row(jobs, [found[job.folder] for job in done], failed, metric.name, figures)
        row["not_trained"] = _not_trained(jobs, plan, needs or {}, few.get(label))
        row |= _in_race(jobs, plan)
        if done:
            measured[label] = [found[job.folder] for job in done]
        rows.append(row)
    samples, n_units, notes = compare_units(rows, measured, metrics, plan.n_folds > 1)
    notes = [*notes, *(_mixed(row) for row in rows if row["weights"])]
    for row in rows:
        ends = interval(samples[row["label"]]) if row["label"] in samples else None
        row["interval"] = None if ends is None else list(ends)
        row["beaten_by"] = _beaten_by(row, rows, metric)
    facts = next(iter(found.values())).read_json("data.json")["facts"] if found else {}
    split = "test" if any("test" in run.read_json("result.json") for run in found.values()) else "valid"
    asked, folds = plan.asked, plan.n_folds if plan.n_folds > 1 else None
    table = {
        "name": folder.name, "data": plan.data, "task": plan.task, "guessed": plan.guessed,
        "score": metric.name, "metrics": [each.to_json() for each in metrics], "figures": list(figures),
        "criterion": first.get("criterion", metric.name), "split": split, "match": plan.match, "folds": folds,
        "budget_seconds": asked.time if asked.steps is None else None, "share_seconds": plan.share,
        "steps": asked.steps, "seeds": list(range(asked.seeds)), "threads": plan.threads, "jobs": plan.at_once,
        "race": [rung.model_dump() for rung in plan.rungs],
        "units": n_units or None, "unit": first.get("unit"), "facts": facts, "versions": _versions(found),
        "command": command, "recipe": plan.recipe, "notes": [*plan.notes, *notes], "finished": finished, "rows": rows,
        "failures": {folder: failure.model_dump() for folder, failure in failed.items()},
    }  # fmt: skip
    rows.sort(key=lambda row: rank(table, row))
    return table | make_verdict(table, lambda one, other: is_better(metric, samples[one], samples[other]))


def _finished(path: Path) -> RunDirectory | None:
    """The run, when it has finished and is whole."""
    if not (path / "result.json").exists():
        return None
    try:
        run = RunDirectory.open(path)
        read_result(run)
    except UnrolledError:
        return None
    return run


def _row(
    jobs: Sequence[Job], runs: Sequence[RunDirectory], failed: Mapping[str, Failure], score: str, figures: Sequence[str]
) -> dict[str, Any]:
    """A line of the table: the mean over the runs that there are."""
    first = jobs[0]
    why = [failed[job.folder].why for job in jobs if job.folder in failed]
    row: dict[str, Any] = {
        "label": first.label, "kind": first.kind, "model": first.model, "fraction": first.fraction,
        "runs": [run.path.name for run in runs], "score": None, "spread": None, "valid": None,
        "valid_of_runs": [], "valid_nats": None, "figures": {}, "parameters": None, "steps": None,
        "seconds_given": None, "training_seconds": None, "tokens_per_second": None, **dict.fromkeys(NAMES),
        "recipe": [], "weights": {}, "failed": why[0] if why else None if runs else "not run yet",
    }  # fmt: skip
    if not runs:
        return row
    results = [run.read_json("result.json") for run in runs]
    split = "test" if "test" in results[0] else "valid"
    names = [name for name in figures if all(name in result[split] for result in results)]
    row["figures"] = {name: _mean(result[split][name] for result in results) for name in names}
    if "valid" in results[0]:
        row["valid_of_runs"] = [result.get("left_out", result["valid"][score]) for result in results]
        row["valid"] = _mean(row["valid_of_runs"])
        if all("nats" in result["valid"] for result in results):
            row["valid_nats"] = _mean(result["valid"]["nats"] for result in results)
    row["recipe"], row["weights"] = results[0].get("recipe", []), results[0].get("weights", {})
    row["parameters"] = results[0]["parameters"]
    given = [run.read_config().get("budget", {}).get("time") for run in runs]
    row["seconds_given"] = _mean(given) if row["kind"] == "model" and None not in given else None
    row["steps"] = round(_mean(result["steps"] for result in results))
    for name in ("training_seconds", "tokens_per_second"):
        row[name] = _mean(result[name] for result in results) if all(name in r for r in results) else None
    costs = [result["cost"] for result in results]
    row |= {name: costs[0].get(name) for name in ("receptive_field", "serial_depth")}
    row |= {name: _best(cost.get(name) for cost in costs) for name in ("tick_microseconds", "memory_megabytes")}
    return row


def _mixed(row: Mapping[str, Any]) -> str:
    """What an ensemble is made of."""
    parts = [f"{run} {weight:.0%}" for run, weight in row["weights"].items()]
    return f"{row['label']}: {', '.join(parts)}, by weights fitted on validation data"


def _for_enough(runs: Sequence[RunDirectory], jobs: Sequence[Job], steps: float) -> dict[str, float]:
    """Seconds in which runs that made so few steps would make enough of them."""
    spent = [float(run.read_json("result.json")["seconds"]) for run in runs]
    return {job.folder: seconds * RANKED / max(steps, 1.0) for job, seconds in zip(jobs, spent, strict=True)}


def _not_trained(jobs: Sequence[Job], plan: Plan, needs: Mapping[str, float], steps: float | None) -> str | None:
    """How long a budget those runs would need that were not trained, because their share had no room for a step, or for
    so few that they are not ranked."""
    seconds = max((needs[job.folder] for job in jobs if job.folder in needs), default=None)
    if seconds is None or plan.share is None:
        return None
    whole = plan.asked.time + plan.rounds * max(SPARE * plan.share, seconds - plan.share)
    what = "not trained" if steps is None else f"not ranked, because it made {steps:.0f} steps"
    return f"{what}: needs about {time_words(rounded_up(seconds))}, a budget of {time_words(rounded_up(whole))}"


def _in_race(jobs: Sequence[Job], plan: Plan) -> dict[str, Any]:
    """The rung at which a row ended, and why it was stopped there, if it was."""
    names, label = {job.folder for job in jobs}, jobs[0].label
    numbers = [number for number, rung in enumerate(plan.rungs, 1) if names & set(rung.runs)]
    why = next((rung.stopped[label] for rung in plan.rungs if label in rung.stopped), None)
    return {"rung": max(numbers, default=None), "stopped": why}


def _mean(values: Any) -> float:
    return float(np.mean(list(values)))


def _best(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return min(known, default=None)


def _beaten_by(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], metric: Metric) -> list[str]:
    """The baselines that a model does not beat."""
    if row["kind"] == "baseline" or row["score"] is None:
        return []
    return [
        other["label"]
        for other in rows
        if other["kind"] == "baseline"
        and other["score"] is not None
        and metric.loss(other["score"]) <= metric.loss(row["score"])
    ]


def _versions(found: Mapping[str, RunDirectory]) -> dict[str, str]:
    return dict(next(iter(found.values())).read_config()["versions"]) if found else {}
