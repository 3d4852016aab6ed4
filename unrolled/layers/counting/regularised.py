"""Logistic regression along a path of regularisation strengths, and the choice of one on examples that are held out.

    W, b = argmin  r/2 |W|^2 - sum_i w_i log p(c_i | z_i)         p = softmax(z W + b), or one sigmoid for each class

The path goes from the strongest r to the weakest, each minimum beginning at the one before. The solver is
scikit-learn's SAGA (Defazio, Bach & Lacoste-Julien 2014): of those tried it is the fastest for sparse features and many
classes.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

STRENGTHS = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
PASSES, CLOSE = 60, 1e-3  # over the data for each strength at most; the relative change of weights at which they end
ENOUGH, FEWEST = 10, 2  # passes over much data, and over very much
WORK = 400_000_000  # weights that all passes over little data together move; much data takes up to ten times as many
FEW = 3000  # examples of which each is held out once; of more, a fifth is


class Stage(NamedTuple):
    """The minimum for one strength: logits are z W + b."""

    strength: float
    W: Array  # [G, C]
    b: Array  # [C]

    def miss(self, z: Any, y: Array, weights: Array | None = None) -> Array:
        """How wrong it is on examples z [n, G] (sparse): weighted errors, and nats to break ties."""
        return misses(np.asarray(z @ self.W + self.b), y, weights)


def misses(logits: Array, y: Array, weights: Array | None = None) -> Array:
    """[2]: errors and nats under logits [n, C] of classes y [n], or of sets y [n, C], which are right as a whole.

    A class that training never showed, whose number is not below C, is wrong and has no nats; `weights` are [C].
    """
    C = logits.shape[1]
    if y.ndim == 2:
        wrong = ((logits > 0) != (y[:, :C] > 0)).any(1) | (y[:, C:] > 0).any(1)
        return np.array([wrong.sum(), (np.logaddexp(0, logits) - y[:, :C] * logits).sum()])
    known = (y >= 0) & (y < C)
    place = np.where(known, y, 0).astype(int)
    w = np.ones(len(y)) if weights is None else np.where(known, weights[place], 1.0)
    nats = np.logaddexp.reduce(logits, axis=1) - np.take_along_axis(logits, place[:, None], 1)[:, 0]
    return np.array([(w * (logits.argmax(1) != y)).sum(), (w * nats)[known].sum()])


def path(z: Any, y: Array, n_classes: int, weights: Array | None, strengths: Sequence[float]) -> Iterator[Stage]:
    """The minimum for each strength, in this order, on features z [n, G] (sparse) and classes [n] or sets [n, C]."""
    if y.ndim == 2:
        yield from _of_sets(z, y, strengths)
        return
    W, b = np.zeros((z.shape[1], n_classes)), np.full(n_classes, -math.log(len(y) + n_classes))
    there = np.unique(y)  # a class without examples is as probable as one example less than one
    if len(there) == 1:
        b[there] = 0.0
        yield from (Stage(strength, W, b) for strength in strengths)
        return
    for strength, found, bias in _minima(z, y, weights, strengths):
        W[:, there], b[there] = found, bias
        yield Stage(strength, W.copy(), b.copy())


def _of_sets(z: Any, y: Array, strengths: Sequence[float]) -> Iterator[Stage]:
    """Each class by itself: its log p less that of its absence."""
    share = (y.sum(0) + 1) / (len(y) + 2)
    varied = [c for c in range(y.shape[1]) if 0 < y[:, c].sum() < len(y)]
    runs = [_minima(z, y[:, c], None, strengths) for c in varied]
    for strength in strengths:
        W, b = np.zeros((z.shape[1], y.shape[1])), np.log(share / (1 - share))  # where all examples say the same
        for c, run in zip(varied, runs):
            _, found, bias = next(run)
            W[:, c], b[c] = found[:, 1] - found[:, 0], bias[1] - bias[0]
        yield Stage(strength, W, b)


def _minima(
    z: Any, y: Array, weights: Array | None, strengths: Sequence[float]
) -> Iterator[tuple[float, Array, Array]]:
    """W [G, C'], b [C'] for the classes that are in y, in order."""
    from sklearn.linear_model import LogisticRegression

    passes = _passes(z.nnz * len(np.unique(y)) * len(STRENGTHS))
    solver = LogisticRegression(solver="saga", max_iter=passes, tol=CLOSE, random_state=0, warm_start=True)
    for strength in strengths:
        solver.C = 1 / strength
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a minimum that is not quite reached is good enough for a baseline
            solver.fit(z, y, sample_weight=weights)
        W, b = solver.coef_.T, solver.intercept_  # [G, C'] or [G, 1]
        if W.shape[1] == 1:  # of two classes the second alone: divided among both
            W, b = np.concatenate([-W / 2, W / 2], axis=1), np.concatenate([-b / 2, b / 2])
        yield strength, W, b


def _passes(work: int) -> int:
    """How often the data is read for each strength, where reading it once for all of them moves so many weights."""
    little, much = WORK // max(1, work), min(ENOUGH, 10 * WORK // max(1, work))
    return min(PASSES, max(little, much, FEWEST))


def left_out(n: int) -> list[NDArray[np.bool_]]:
    """Which of n examples are held out for a choice, each of a few once: masks [n]."""
    i = np.arange(n)
    return [i % 3 == k for k in range(3)] if n <= FEW else [i % 5 == 0]


def least(totals: Array) -> int:
    """The option, a row of misses [K, 2], with the fewest errors; of equal ones the one with the fewest nats."""
    return min(range(len(totals)), key=lambda k: tuple(totals[k]))


class Examples(NamedTuple):
    """Features [n, G] (sparse) and targets, classes [n] or sets [n, C]."""

    z: Any
    y: Array

    def take(self, rows: Any) -> Examples:
        return Examples(self.z[rows], self.y[rows])


def choose(known: Examples, held_out: Examples | None, n_classes: int, weights: Array | None) -> float:
    """The strength whose minimum errs least on examples that are held out, those given or some of the known ones.

    `weights` [C] say how much an example of each class counts.
    """
    work = known.z.nnz * n_classes * len(STRENGTHS) * ENOUGH
    some = known.take(slice(None, None, max(1, -(-work // (10 * WORK)))))  # of very much data evenly spread examples
    trials = [(some, held_out)] if held_out else [(some.take(~rows), some.take(rows)) for rows in left_out(len(some.y))]
    totals = np.zeros((len(STRENGTHS), 2))
    for seen, others in trials:
        own = None if weights is None else weights[seen.y]
        stages = path(seen.z, seen.y, n_classes, own, STRENGTHS)
        totals += [stage.miss(others.z, others.y, weights) for stage in stages]
    return STRENGTHS[least(totals)]


def minimum(known: Examples, n_classes: int, weights: Array | None, strength: float) -> Stage:
    """For one strength, by way of the stronger ones."""
    *_, last = path(
        known.z, known.y, n_classes, None if weights is None else weights[known.y],
        [*(each for each in STRENGTHS if each > strength), strength],
    )  # fmt: skip
    return last
