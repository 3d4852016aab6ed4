"""`combine`: the best combination of finished runs, as a run of its own.

Members and weights are selected on validation data, greedily and with replacement (Caruana et al. 2004, "Ensemble
selection from libraries of models"): begin with the best run, then move towards whichever run makes the mixture best,
by the step that does it best, as long as one helps. What a mixture is, the emission of the task says; how good one is,
its likelihood, or the criterion of the task.

Each member reads the validation data once: its outputs are kept, and every mixture is made of what is kept.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from unrolled.core.causal import Encoder, decoder_of
from unrolled.core.compose import least
from unrolled.core.errors import UnrolledError
from unrolled.core.forward import carries
from unrolled.core.task import Ledger, Task
from unrolled.data.files.file_form import files_as
from unrolled.layers.parts.ensemble import kind_of, together
from unrolled.runs import build
from unrolled.runs.config import Member, RunConfig
from unrolled.runs.run import Run, load, own_file_for
from unrolled.training.heard import Outputs, once
from unrolled.training.together import mean_figures, saved

MOST = 10  # runs that are tried, the best on validation data
ROUNDS = 12  # mixtures on the way, at most
FIRST, STEPS = 0.1, (0.03, 0.2, 0.35, 0.5)  # shares that a run is given first, and then
KEPT = 100_000_000  # numbers that are kept of all outputs
TRIED = 3  # mixtures that are evaluated on all validation data
GAIN = 1e-3  # share of the criterion by which a further member must improve it
SEARCHING = 0.4  # share of the time in which mixtures are compared; the rest is for the final figures
WRITING = 0.25  # of the rest, the most that goes into texts on validation data
PART = 8_000  # tokens of validation data, about, by which mixtures are compared


class Mixture(NamedTuple):
    """The weights of runs, by their number, and the criterion on a part of the validation data."""

    shares: Mapping[int, float]
    value: float

    def towards(self, run: int, step: float) -> dict[int, float]:
        """Weights with that step towards a run alone.

        >>> Mixture({0: 0.5, 1: 0.5}, 1.0).towards(2, 0.5)
        {0: 0.25, 1: 0.25, 2: 0.5}
        """
        shares = {i: (1 - step) * share for i, share in self.shares.items()}
        return {**shares, run: shares.get(run, 0.0) + step}


class NoneBetter(UnrolledError):
    """No combination is better than its best member."""


class Fold(NamedTuple):
    """Validation data, and the models that have not seen it, by the number of their run."""

    task: Task
    models: Mapping[int, Any]


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
    best = metric.loss(first.result["valid"][metric.name])
    afford = math.inf if seconds is None else (1 - SEARCHING) * seconds
    for found in _mixtures(parts, deadline, afford):
        figures = [_figures(found, fold, afford * WRITING / len(parts)) for fold in parts]
        if metric.loss(mean_figures(figures)[metric.name]) <= best:  # its criterion is better
            shares = {runs[i]: share for i, share in found.shares.items()}
            config = _config(shares)
            outcome = _outcome(shares, baselines) | (_of_folds(figures, shares, metric.name) if folds else {})
            return saved(out, config, task, _loaded(config, task, runs), outcome, started, own_file)
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


def _config(shares: Mapping[Run, float]) -> RunConfig:
    """That of the run with the largest weight, with all members."""
    order = sorted(shares, key=lambda run: -shares[run])
    members = [Member.of(run.path.name, run.config, shares[run]) for run in order]
    return order[0].config.model_copy(update={"ensemble": members, "members": 1, "combine": "mixture"})


def _loaded(config: RunConfig, task: Task, runs: Sequence[Run]) -> Any:
    """The model of an ensemble with the weights of its members."""
    models = {run.path.name: run.model for run in runs}
    weights = [member.weight for member in config.ensemble]
    return together([models[member.run] for member in config.ensemble], _mix(task), weights)


def _mix(task: Task) -> Callable[[Tensor, Tensor], Tensor]:
    """What the task takes outputs to mean, part of which it may learn later (a temperature)."""
    return lambda ys, weights: task.emission.mix(ys, weights)


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


def _figures(mixture: Mixture, fold: Fold, writing: float) -> dict[str, float]:
    """On all validation data of a fold; texts are written for so many seconds."""
    model = together([fold.models[i] for i in mixture.shares], _mix(fold.task), list(mixture.shares.values()))
    return fold.task.evaluate(model, "valid", ledger=Ledger(fold.task.ranks_by.name, writing))


def _mixtures(folds: Sequence[Fold], deadline: float | None, afford: float) -> Iterator[Mixture]:
    """Mixtures of several runs, the best first, whose final figures take so many seconds at most. Runs that cannot
    carry a state along a stream make others read it in windows too, so those that can are also tried alone."""
    models = folds[0].models
    groups = [tuple(models)]
    carrying = tuple(i for i in models if carries(models[i]))
    if 0 < len(carrying) < len(models):
        groups.insert(0, carrying)
    tried: list[tuple[list[Fold], list[int], int]] = []
    for group in groups:
        numbers = len(groups) * len(group) * len(folds) * max(1, folds[0].task.emission.d_out)
        limit, each = max(1000, min(PART // len(folds), KEPT // numbers)), afford / len(folds)
        heard = [
            Fold(fold.task, _heard({i: fold.models[i] for i in group}, fold.task, limit, deadline, each))
            for fold in folds
        ]
        tried.append((heard, [i for i in group if all(i in fold.models for fold in heard)], limit))
    for value in (by_likelihood, by_criterion):
        found = [
            mixture
            for some in tried
            for mixture in _greedy(*some, deadline, value)
            if len(mixture.shares) > 1 and _seconds(mixture, some[0]) <= afford
        ]
        yield from sorted(found, key=lambda mixture: mixture.value)[:TRIED]


def _seconds(mixture: Mixture, folds: Sequence[Fold]) -> float:
    """What the final figures of a mixture take."""
    return float(sum(fold.models[i].needs for fold in folds for i in mixture.shares))


def _heard(models: Mapping[int, Any], task: Task, limit: int, deadline: float | None, afford: float) -> dict[int, Any]:
    """The models, as many as there is time for, each with its outputs on a part of the validation data; all read it as
    they would together."""
    known: dict[int, Any] = {}
    size = task.size("valid")
    whole = (size + sum(map(task.size, task.held_out()))) / max(1, min(limit, size))  # validation data is read twice
    shortest = least(decoder_of(model).max_length for model in models.values())
    grows = any(decoder_of(model).state_grows for model in models.values() if not isinstance(model, Encoder))
    for i, model in models.items():
        if len(known) > 1 and _is_late(deadline):
            break
        own, begun = once(model, Outputs(task.emission.d_out), shortest, grows), time.monotonic()
        with suppress(UnrolledError):
            task.evaluate(own, "valid", limit)
            own.needs = whole * (time.monotonic() - begun)
            if own.needs <= afford:
                known[i] = own
    return known


def by_likelihood(figures: Mapping[str, float], criterion: str) -> float:
    """Small changes of weights change it, which is not so of errors; of tasks without it their criterion."""
    return figures.get("nats", figures[criterion])


def by_criterion(figures: Mapping[str, float], criterion: str) -> float:
    """By the likelihood where it is equal."""
    return figures[criterion] + 1e-3 * figures.get("nats", 0.0)


Value = Callable[[Mapping[str, float], str], float]


def _greedy(
    folds: Sequence[Fold], known: Sequence[int], limit: int, deadline: float | None, value: Value
) -> list[Mixture]:
    """The mixtures on the way, from the best run alone to the best that was found."""

    def tried(shares: Mapping[int, float]) -> Mixture:
        values = []
        for task, models in folds:
            for i in shares:
                models[i].rewind()
            whole = together([models[i] for i in shares], _mix(task), list(shares.values()))
            values.append(value(task.evaluate(whole, "valid", limit), task.criterion))
        return Mixture(shares, sum(values) / len(values))

    def best(mixtures: Iterable[Mixture]) -> Mixture:
        return min(mixtures, key=lambda mixture: mixture.value)

    path = [best(tried({i: 1.0}) for i in known)] if known else []
    while path and len(path) < ROUNDS and not _is_late(deadline):
        now = path[-1]
        others = [i for i in known if now.shares.get(i, 0.0) < 1]
        if not others:
            break
        first = {i: tried(now.towards(i, FIRST)) for i in others}
        toward = min(first, key=lambda i: first[i].value)
        found = best([first[toward], *(tried(now.towards(toward, step)) for step in STEPS)])
        if not found.value < now.value - GAIN * abs(now.value):
            break
        path.append(found)
    return path


def _is_late(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline
