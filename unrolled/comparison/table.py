"""The table of a comparison: from run directories to rows, sorted, with what can be said about them for sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.comparison.plan import Job, Plan
from unrolled.comparison.statistics import Array, Sample, draw_scores, interval, is_better
from unrolled.core import discover
from unrolled.core.errors import DataError, UnrolledError, listed
from unrolled.core.metric import Metric, metrics_in
from unrolled.report.words import title_words
from unrolled.runs.directory import TABLE_FORMAT, RunDirectory

SPLITS = ("test", "valid")  # what is shown is of the first that there is
NAMES = ("receptive_field", "serial_depth", "tick_microseconds", "memory_megabytes")


def make_table(folder: Path, plan: Plan, command: str, failed: Mapping[str, str], finished: bool) -> dict[str, Any]:
    """Everything that the terminal, the report and scripts show."""
    task = discover.tasks.load(plan.task).Task
    found = {job.folder: run for job in plan.jobs if (run := _finished(folder / job.folder)) is not None}
    first = next(iter(found.values())).read_json("result.json") if found else {}
    figures, metrics = first.get("figures", task.FIGURES), metrics_in(first, task.SCORE)  # settings may change a task's
    metric = metrics[0]
    rows, samples = [], {}
    for label in dict.fromkeys(job.label for job in plan.jobs):
        jobs = [job for job in plan.jobs if job.label == label]
        done = [job for job in jobs if job.folder in found and (job.members or job.fold is None)]
        row = _row(jobs, [found[job.folder] for job in done], failed, metric.name, figures)
        if done:
            samples[label] = _sample([found[job.folder] for job in done], metric)
            row["score"], row["spread"] = samples[label].score, samples[label].spread
        rows.append(row)
    drawn = draw_scores(samples) if samples else {}
    for row in rows:
        row["interval"] = list(interval(drawn[row["label"]])) if row["label"] in drawn else None
        row["beaten_by"] = _beaten_by(row, rows, metric)
    ranked = "valid" if plan.asked.folds is not None else "score"
    rows.sort(key=lambda row: (row[ranked] is None, metric.loss(row[ranked] or 0.0)))
    winner, verdict = _verdict(rows, drawn, metric, plan.asked.folds)
    facts = next(iter(found.values())).read_json("data.json")["facts"] if found else {}
    split = "test" if any("test" in run.read_json("result.json") for run in found.values()) else "valid"
    asked = plan.asked
    return {
        "format": TABLE_FORMAT, "name": folder.name, "data": plan.data, "task": plan.task, "guessed": plan.guessed,
        "score": metric.name, "metrics": [each.to_json() for each in metrics], "figures": list(figures),
        "criterion": first.get("criterion", metric.name), "split": split, "match": asked.match, "folds": asked.folds,
        "budget_seconds": asked.time if asked.steps is None else None, "share_seconds": plan.share,
        "steps": asked.steps, "seeds": list(range(asked.seeds)), "threads": plan.threads, "jobs": plan.at_once,
        "facts": facts, "versions": _versions(found), "command": command, "winner": winner, "verdict": verdict,
        "notes": plan.notes, "finished": finished, "rows": rows,
    }  # fmt: skip


def _finished(path: Path) -> RunDirectory | None:
    """The run, when it has come to its end and is whole."""
    if not (path / "result.json").exists():
        return None
    try:
        run = RunDirectory.open(path)
        run.read_json("result.json")
    except UnrolledError:
        return None
    return run


def _row(
    jobs: Sequence[Job], runs: Sequence[RunDirectory], failed: Mapping[str, str], score: str, figures: Sequence[str]
) -> dict[str, Any]:
    """A line of the table: the mean over the runs that there are."""
    first = jobs[0]
    why = [failed[job.folder] for job in jobs if job.folder in failed]
    row: dict[str, Any] = {
        "label": first.label, "kind": first.kind, "model": first.model, "fraction": first.fraction,
        "runs": [run.path.name for run in runs], "score": None, "spread": None, "valid": None, "figures": {},
        "parameters": None,
        "training_seconds": None, "tokens_per_second": None, **dict.fromkeys(NAMES),
        "failed": why[0] if why else None if runs else "not run yet",
    }  # fmt: skip
    if not runs:
        return row
    results = [run.read_json("result.json") for run in runs]
    split = "test" if "test" in results[0] else "valid"
    names = [name for name in figures if all(name in result[split] for result in results)]
    row["figures"] = {name: _mean(result[split][name] for result in results) for name in names}
    if "valid" in results[0]:
        row["valid"] = _mean(result.get("left_out", result["valid"][score]) for result in results)
    row["parameters"] = results[0]["parameters"]
    for name in ("training_seconds", "tokens_per_second"):
        row[name] = _mean(result[name] for result in results) if all(name in r for r in results) else None
    costs = [result["cost"] for result in results]
    row |= {name: costs[0].get(name) for name in ("receptive_field", "serial_depth")}
    row |= {name: _best(cost.get(name) for cost in costs) for name in ("tick_microseconds", "memory_megabytes")}
    return row


def _mean(values: Any) -> float:
    return float(np.mean(list(values)))


def _best(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return min(known, default=None)


def _sample(runs: Sequence[RunDirectory], metric: Metric) -> Sample:
    """The statistics of a metric on the units of the last held-out part."""
    found = []
    for run in runs:
        tensors = run.read_tensors("units.safetensors")
        name = next((f"{split}.{metric.name}" for split in SPLITS if f"{split}.{metric.name}" in tensors), None)
        if name is None:
            raise DataError(f"{run.path}: it has no {metric.name} of single units; train it again")
        found.append(tensors[name].numpy())
    return Sample(np.stack(found), metric.formula)


def _beaten_by(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], metric: Metric) -> list[str]:
    """The baselines that a model does not beat."""
    if row["kind"] != "model" or row["score"] is None:
        return []
    return [
        other["label"]
        for other in rows
        if other["kind"] == "baseline"
        and other["score"] is not None
        and metric.loss(other["score"]) <= metric.loss(row["score"])
    ]


def _verdict(
    rows: Sequence[Mapping[str, Any]], drawn: Mapping[str, Array], metric: Metric, folds: int | None
) -> tuple[str | None, str]:
    """Who has won, if the intervals of the differences to all others say so, in words."""
    scored = [row for row in rows if row["score"] is not None]
    if not scored:
        return None, "No run has come to its end."
    best, others, score = scored[0], scored[1:], title_words(metric.name)
    close = [row["label"] for row in others if not is_better(metric, drawn[best["label"]], drawn[row["label"]])]
    said = f"{best['score']:.4f} {score}"
    if folds is not None:
        won = best["kind"] == "model" and not close
        return (best["label"] if won else None), _picked(scored, close, score, folds)
    if best["kind"] == "baseline":
        return None, f"No model beats the baseline {best['label']} ({said})."
    if not close:
        return best["label"], f"{best['label']} is best: {said}, and its lead over every other row is beyond chance."
    many = listed([best["label"], *close])
    return None, f"{best['label']} has the best score ({said}), but this data does not tell {many} apart."


def _picked(rows: Sequence[Mapping[str, Any]], close: Sequence[str], score: str, folds: int) -> str:
    """What cross-validation on the training part says, and what came of it on data that it never saw."""
    best = rows[0]
    solved = best["kind"] == "baseline"
    who = f"the baseline {best['label']}" if solved else best["label"]
    what = f"Solved on all {folds} it has" if solved else f"Its {folds} models together have"
    sure = f"; this data does not tell it from {listed(close)}" if close else ""
    picked = f"Picked by {folds} folds of the training part alone: {who}, {best['valid']:.4f} {score} in the mean."
    return f"{picked} {what} {best['score']:.4f} {score} on test{sure}."


def _versions(found: Mapping[str, RunDirectory]) -> dict[str, str]:
    return dict(next(iter(found.values())).read_json("config.json")["versions"]) if found else {}
