"""How sure a score is: bootstrap intervals over test units and seeds, the same draws for all models.

    score = sum_u w_u total_u / sum_u w_u count_u,     w ~ multinomial(U; 1/U, .., 1/U)          (Efron 1979)

A draw takes units with replacement, the same ones for every model, so that differences are paired; and, of each model,
seeds with replacement.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
DRAWS = 2000
MOST_UNITS = 2000  # neighbouring units are put together beyond this
EDGES = (2.5, 97.5)  # percent


class Sample(NamedTuple):
    """Losses of one model on the test units: one row of totals per seed."""

    totals: Array  # [S, U]
    counts: Array  # [S, U]

    @property
    def score(self) -> float:
        """Mean over seeds."""
        return float((self.totals.sum(1) / self.counts.sum(1)).mean())

    @property
    def spread(self) -> float | None:
        """Standard deviation over seeds, where there are several."""
        scores = self.totals.sum(1) / self.counts.sum(1)  # [S]
        return float(scores.std(ddof=1)) if len(scores) > 1 else None


def draw_scores(samples: dict[str, Sample], seed: int = 0, draws: int = DRAWS) -> dict[str, Array]:
    """Scores [draws] of each model under resampled units and seeds."""
    grouped = {name: Sample(_grouped(s.totals), _grouped(s.counts)) for name, s in samples.items()}
    n_units = {sample.totals.shape[1] for sample in grouped.values()}
    if len(n_units) > 1:
        raise ValueError(f"models were measured on different data: {sorted(n_units)} units")
    random = np.random.default_rng(seed)
    U = n_units.pop()
    w = random.multinomial(U, np.full(U, 1 / U), size=draws).astype(np.float64)  # [draws, U]
    scores = {}
    for name, sample in grouped.items():
        each = (w @ sample.totals.T) / np.maximum(w @ sample.counts.T, 1e-300)  # [draws, S]
        S = each.shape[1]
        seeds = random.multinomial(S, np.full(S, 1 / S), size=draws) / S  # [draws, S]
        scores[name] = (each * seeds).sum(1)
    return scores


def _grouped(values: Array) -> Array:
    """[S, U] with neighbours added up, so that no more than MOST_UNITS are left."""
    if values.shape[1] <= MOST_UNITS:
        return values
    edges = np.linspace(0, values.shape[1], MOST_UNITS, endpoint=False).astype(int)
    return np.add.reduceat(values, edges, axis=1)


def interval(scores: Array) -> tuple[float, float]:
    low, high = np.percentile(scores, EDGES)
    return float(low), float(high)


def is_below(one: Array, other: Array) -> bool:
    """Whether the interval of the paired difference lies below zero: `one` has surely the smaller loss."""
    return interval(one - other)[1] < 0
