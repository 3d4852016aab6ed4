"""How sure a score is: bootstrap intervals over test units and seeds, the same draws for all models.

    score = f(sum_u w_u s_u),     w ~ multinomial(U; 1/U, .., 1/U)          (Efron 1979; Koehn 2004 for translation)

s_u are the statistics of a unit and f is the formula of the metric (objectives/corpus.py), such as total / count. A
draw takes units with replacement, the same ones for every model, so that differences are paired; and, of each model,
seeds with replacement.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.core.metric import Metric
from unrolled.objectives.corpus import value_of

Array = NDArray[np.float64]
DRAWS = 2000
MOST_UNITS = 2000  # neighbouring units are put together beyond this
EDGES = (2.5, 97.5)  # percent


class Sample(NamedTuple):
    """Statistics of one model on the test units, by seed."""

    statistics: Array  # [S, U, k]; NaN: not measured
    formula: str = "ratio"

    @property
    def scores(self) -> Array:
        """[S]: of each seed, on the units that were measured."""
        return value_of(self.formula, np.nansum(self.statistics, axis=1))

    @property
    def score(self) -> float:
        """Mean over seeds."""
        return float(self.scores.mean())

    @property
    def spread(self) -> float | None:
        """Standard deviation over seeds, where there are several."""
        return float(self.scores.std(ddof=1)) if len(self.scores) > 1 else None


def in_common(samples: Mapping[str, Sample]) -> dict[str, Sample]:
    """The units that were measured for every model and seed: what models are compared on."""
    n_units = {sample.statistics.shape[1] for sample in samples.values()}
    if len(n_units) > 1:
        raise ValueError(f"models were measured on different data: {sorted(n_units)} units")
    known = [~np.isnan(sample.statistics).any(axis=(0, 2)) for sample in samples.values()]  # [U] each
    kept = np.logical_and.reduce(known)
    return {name: sample._replace(statistics=sample.statistics[:, kept]) for name, sample in samples.items()}


def draw_scores(samples: Mapping[str, Sample], seed: int = 0, draws: int = DRAWS) -> dict[str, Array]:
    """Scores [draws] of each model under resampled units and seeds."""
    grouped = {name: _grouped(sample.statistics) for name, sample in in_common(samples).items()}  # [S, U, k]
    random = np.random.default_rng(seed)
    U = next(iter(grouped.values())).shape[1]
    w = random.multinomial(U, np.full(U, 1 / U), size=draws).astype(np.float64)  # [draws, U]
    scores = {}
    for name, statistics in grouped.items():
        sums = np.stack([w @ each for each in statistics], axis=1)  # [draws, S, k]
        each = value_of(samples[name].formula, sums)  # [draws, S]
        S = each.shape[1]
        seeds = random.multinomial(S, np.full(S, 1 / S), size=draws) / S  # [draws, S]
        scores[name] = (each * seeds).sum(1)
    return scores


def _grouped(statistics: Array) -> Array:
    """[S, U, k] with neighbours added up, so that no more than MOST_UNITS are left."""
    U = statistics.shape[1]
    if U <= MOST_UNITS:
        return statistics
    edges = np.linspace(0, U, MOST_UNITS, endpoint=False).astype(int)
    return np.asarray(np.add.reduceat(statistics, edges, axis=1), np.float64)


def interval(scores: Array) -> tuple[float, float]:
    low, high = np.percentile(scores, EDGES)
    return float(low), float(high)


def is_better(metric: Metric, one: Array, other: Array) -> bool:
    """Whether the interval of the paired difference excludes zero: `one` has surely the better score."""
    difference = interval(one - other)
    return difference[0] > 0 if metric.larger else difference[1] < 0
