"""`combine`: the best combination of finished runs, as a run of its own.

Members and weights are selected on validation data (member_search.py). Where outputs are probabilities of finitely many
choices, position by position, weights that depend on how sure the members are (gating.py) take the place of constant
ones if they are better on validation data.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from unrolled.core.errors import UnrolledError
from unrolled.core.task import Ledger, Task
from unrolled.data.files.file_form import files_as
from unrolled.layers.parts.ensemble import kind_of, together
from unrolled.layers.parts.gate import Gate
from unrolled.runs import build
from unrolled.runs.config import Member, RunConfig
from unrolled.runs.run import Run, load, own_file_for
from unrolled.training import gating
from unrolled.training.member_search import Fold, Found, contributions, mixed, mixtures
from unrolled.training.together import mean_figures, saved

MOST = 10  # runs that are tried, the best on validation data
SEARCHING = 0.4  # share of the time in which mixtures are compared; the rest is for the final figures
WRITING = 0.25  # of the rest, the most that goes into texts on validation data
FINAL = 4  # times the figures on validation data: those with weights of each position, and those of the run


class NoneBetter(UnrolledError):
    """No combination is better than its best member."""


def combine(
    candidates: Sequence[str | Path],
    data: Any,
    out: str | Path,
    own_file: str | Path | None = None,
    baselines: Mapping[str, Any] | None = None,
    seconds: float | None = None,
    folds: Sequence[Sequence[str | Path]] = (),
) -> Run:
    """A run whose model mixes those of some of these runs, of one task and the same data; the weights are selected on
    validation data in about so many seconds. NoneBetter where no mixture is better there than every run alone.

    Where runs join several folds, `folds` has, for each candidate, the runs of its folds: weights are selected by what
    those say about the fold that they have not seen.
    """
    started = time.monotonic()
    deadline = None if seconds is None else started + SEARCHING * seconds
    if not candidates:
        raise NoneBetter("no run has finished")
    runs = [load(path, own_file=own_file_for(path, own_file)) for path in candidates]
    metric = runs[0].task.ranks_by
    order = sorted(range(len(runs)), key=lambda i: metric.loss(_valid(runs[i], metric.name)))
    first = runs[order[0]]
    order = [i for i in order if _fits(runs[i], first)][:MOST]
    task = _prepared(first.config, data)
    if folds:
        trained = {i: [load(path, own_file=own_file_for(path, own_file)) for path in folds[i]] for i in order}
        numbers = range(len(trained[order[0]]))
        parts = [
            Fold(_prepared(trained[order[0]][k].config, data), {i: trained[i][k].model for i in order}) for k in numbers
        ]
    else:
        parts = [Fold(task, {i: runs[i].model for i in order})]
    best = metric.loss(_valid(first, metric.name))
    afford = math.inf if seconds is None else (1 - SEARCHING) * seconds
    for found in mixtures(parts, deadline, afford):
        begun = time.monotonic()
        figures = [_figures(found, fold, afford * WRITING / len(parts)) for fold in parts]
        shares = {runs[i]: share for i, share in found.mixture.shares.items()}
        of_folds = _of_folds(figures, shares, metric.name) if folds else {}
        ranked = float(of_folds.get("left_out", mean_figures(figures)[metric.name]))
        if metric.loss(ranked) <= best:  # its criterion is better
            outcome = _outcome(shares, baselines) | of_folds
            outcome["members"] = [{**each, "run": runs[each["run"]].path.name} for each in contributions(found)]
            late = seconds is not None and time.monotonic() - started + FINAL * (time.monotonic() - begun) > seconds
            gate = None if folds or late else _gate(found, parts[0], figures[0], outcome)
            config = _config(shares, "mixture" if gate is None else "gate")
            return saved(out, config, task, _loaded(config, task, runs, gate), outcome, started, own_file)
    raise NoneBetter(f"no combination is better than {first.path.name} on validation data")


def _valid(run: Run, score: str) -> float:
    """The score by which a run is ranked."""
    result: Mapping[str, Any] = run.result
    return float(result.get("left_out", result["valid"][score]))


def _prepared(config: RunConfig, data: Any) -> Task:
    task = build.make_task(config)
    with files_as(config.files.form()):
        task.prepare(data)
    return task


def _fits(run: Run, first: Run) -> bool:
    """Whether two runs have outputs of one meaning, at the same places."""
    one, other = run.task.ports().shape(), first.task.ports().shape()
    same = run.config.task_settings == first.config.task_settings and one == other
    return same and kind_of(run.model) is kind_of(first.model)


def _config(shares: Mapping[Run, float], combine: Literal["mixture", "gate"]) -> RunConfig:
    """That of the run with the largest weight, with all members."""
    order = sorted(shares, key=lambda run: -shares[run])
    members = [Member.of(run.path.name, run.config, shares[run]) for run in order]
    return order[0].config.model_copy(update={"ensemble": members, "members": 1, "combine": combine})


def _loaded(config: RunConfig, task: Task, runs: Sequence[Run], gate: Gate | None) -> Any:
    """The model of an ensemble with the weights of its members."""
    models = {run.path.name: run.model for run in runs}
    weights = [member.weight for member in config.ensemble]
    return together([models[member.run] for member in config.ensemble], gate or build.mixture(task), weights)


def _gate(found: Found, fold: Fold, figures: Mapping[str, float], outcome: dict[str, Any]) -> Gate | None:
    """Weights of each position, which the outcome notes, where they are better on all validation data than the constant
    ones."""
    task, shares = fold.task, found.mixture.shares
    order = sorted(shares, key=lambda i: -shares[i])
    heard, weights = found.folds[0].models, [shares[i] for i in order]
    for i in order:
        heard[i].rewind()
    gate = gating.fitted([heard[i] for i in order], weights, task, found.limit)
    if gate is None:
        return None
    after = task.evaluate(together([fold.models[i] for i in order], gate, weights), "valid")
    metric, name = task.ranks_by, task.criterion
    if after[name] >= figures[name] or metric.loss(after[metric.name]) > metric.loss(figures[metric.name]):
        return None
    outcome["notes"] = [
        f"weights depend on how sure each member is at a position: {after[name]:.4g} {name} on validation data, "
        f"{figures[name]:.4g} with constant weights"
    ]
    return gate


def _outcome(shares: Mapping[Run, float], baselines: Mapping[str, Any] | None) -> dict[str, Any]:
    """The weights, and the work of all members."""
    order = sorted(shares, key=lambda run: -shares[run])
    return {
        "weights": {run.path.name: round(shares[run], 4) for run in order},
        "baselines": dict(baselines or {}),
        "steps": sum(run.result["steps"] for run in order),
        "training_seconds": round(sum(run.result["training_seconds"] for run in order), 2),
    }


def _of_folds(figures: Sequence[dict[str, float]], shares: Mapping[Run, float], score: str) -> dict[str, Any]:
    """The figures on validation data; `left_out` is as much less kind than they are as those of the members."""
    valid = mean_figures(figures)
    kind = sum(share * (_valid(run, score) - run.result["valid"][score]) for run, share in shares.items())
    return {"valid": valid, "folds": list(figures), "left_out": valid[score] + kind}


def _figures(found: Found, fold: Fold, writing: float) -> dict[str, float]:
    """On all validation data of a fold; texts are written for so many seconds."""
    model = mixed(found.mixture.shares, fold)
    return fold.task.evaluate(model, "valid", ledger=Ledger(fold.task.ranks_by.name, writing))
