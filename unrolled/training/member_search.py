"""Mixtures of several models, the best first, by what they say on validation data.

Members and weights are selected greedily and with replacement (Caruana et al. 2004, "Ensemble selection from libraries
of models"): begin with the best model, then move towards whichever makes the mixture best, by the step that does it
best, as long as one helps. What a mixture is, the emission of the task says; how good one is, its likelihood, or the
criterion of the task.

Each model reads the validation data once: its outputs are kept, and every mixture is made of what is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from unrolled.core.causal import Encoder, decoder_of
from unrolled.core.compose import least
from unrolled.core.errors import UnrolledError
from unrolled.core.forward import carries
from unrolled.core.task import Task
from unrolled.layers.parts.ensemble import together
from unrolled.runs import build
from unrolled.training.heard import Outputs, once

ROUNDS = 12  # mixtures on the way, at most
FIRST, STEPS = 0.1, (0.03, 0.2, 0.35, 0.5)  # shares that a run is given first, and then
KEPT = 100_000_000  # numbers that are kept of all outputs
TRIED = 3  # mixtures that are evaluated on all validation data
GAIN = 1e-3  # share of the criterion by which a further member must improve it
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


class Fold(NamedTuple):
    """Validation data, and the models that have not seen it, by the number of their run."""

    task: Task
    models: Mapping[int, Any]


class Found(NamedTuple):
    """A mixture, with the models that give their outputs on a part of the validation data again, of about this size."""

    mixture: Mixture
    folds: Sequence[Fold]
    limit: int


def mixtures(folds: Sequence[Fold], deadline: float | None, afford: float) -> Iterator[Found]:
    """Mixtures of several runs, the best first, whose final figures take so many seconds at most. Runs that cannot
    carry a state along a stream make others read it in windows too, so those that can are also tried alone."""
    models = folds[0].models
    groups = [tuple(models)]
    carrying = tuple(i for i in models if carries(models[i]))
    if 0 < len(carrying) < len(models):
        groups.insert(0, carrying)
    tried: list[tuple[list[Fold], int]] = []
    for group in groups:
        numbers = len(groups) * len(group) * len(folds) * max(1, folds[0].task.emission.d_out)
        limit, each = max(1000, min(PART // len(folds), KEPT // numbers)), afford / len(folds)
        heard = [
            Fold(fold.task, _heard({i: fold.models[i] for i in group}, fold.task, limit, deadline, each))
            for fold in folds
        ]
        tried.append((heard, limit))
    for value in (by_likelihood, by_criterion):
        found = [
            Found(mixture, heard, limit)
            for heard, limit in tried
            for mixture in _greedy(heard, limit, deadline, value)
            if len(mixture.shares) > 1 and _seconds(mixture, heard) <= afford
        ]
        yield from sorted(found, key=lambda each: each.mixture.value)[:TRIED]


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


def mixed(shares: Mapping[int, float], fold: Fold) -> Any:
    """The model that mixes those of a fold."""
    return together([fold.models[i] for i in shares], build.mixture(fold.task), list(shares.values()))


def _value(folds: Sequence[Fold], shares: Mapping[int, float], limit: int, value: Value) -> float:
    """That of a mixture, the mean over folds, by outputs that are kept."""
    values = []
    for fold in folds:
        for i in shares:
            fold.models[i].rewind()
        values.append(value(fold.task.evaluate(mixed(shares, fold), "valid", limit), fold.task.criterion))
    return sum(values) / len(values)


def _greedy(folds: Sequence[Fold], limit: int, deadline: float | None, value: Value) -> list[Mixture]:
    """The mixtures on the way, from the best run alone to the best that was found."""
    known = [i for i in folds[0].models if all(i in fold.models for fold in folds)]

    def tried(shares: Mapping[int, float]) -> Mixture:
        return Mixture(shares, _value(folds, shares, limit, value))

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


def contributions(found: Found) -> list[dict[str, Any]]:
    """What each member brings: the criterion on a part of the validation data of it alone and of the mixture without
    it (its weight shared out), and its share of the time that outputs take."""
    shares = found.mixture.shares

    def score(some: Mapping[int, float]) -> float:
        rest = {i: share / sum(some.values()) for i, share in some.items()}
        return _value(found.folds, rest, found.limit, lambda figures, criterion: figures[criterion])

    needs = {i: sum(fold.models[i].needs for fold in found.folds) for i in shares}
    return [
        {
            "run": i,
            "weight": round(shares[i], 4),
            "alone": score({i: 1.0}),
            "without": score({j: share for j, share in shares.items() if j != i}),
            "with": score(shares),
            "cost": round(needs[i] / max(sum(needs.values()), 1e-9), 4),
        }
        for i in sorted(shares, key=lambda i: -shares[i])
    ]
