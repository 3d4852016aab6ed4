"""How sure a score is, over test units and over seeds, also where there are few of either.

    t_u  = U f(s) - (U - 1) f(s - s_u),   s = sum_u s_u        the units' own values of a metric f         (Tukey 1958)
    e^2  = var_u(t) / U  +  var_i(f_i) / S                     of units u, and of seeds i where there are several
    f +- q e                                                   q of Student's t, degrees as by Satterthwaite (1946)

s_u are the statistics of a unit and f is the formula of the metric (objectives/corpus.py), such as total / count, where
t_u is the unit's own loss. Of a rate p the interval is that of Wilson (1927) for n = p (1 - p) / e^2 trials, which is
honest where nothing, or everything, is wrong; there n is the number of units.

One model is significantly better than another where the units' differences d_u = t_u - t'_u are one-sided: of all ways
to flip their signs, fewer than 5 % give as large a sum (Fisher 1935); of 0/1 losses that is McNemar's test. Those that
give an equal sum count by half (mid-p). Where seeds were varied, the difference must also exceed q e.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.core.metric import Metric
from unrolled.objectives.corpus import value_of

Array = NDArray[np.float64]
LEVEL = 0.95
FLIPS, AT_ONCE = 4000, 500  # ways to flip signs that are tried, where there are too many to try all
FEW = 12  # units of which all are tried
MOST_UNITS = 2000  # neighbouring units are put together beyond this
SAME = 1e-9  # sums that differ by less than this share are equal


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

    @property
    def units(self) -> Array:
        """t_u [U], the mean over seeds."""
        sums = self.statistics.sum(1, keepdims=True)  # [S, 1, k]
        U = self.statistics.shape[1]
        whole, without = value_of(self.formula, sums), value_of(self.formula, sums - self.statistics)  # [S, 1], [S, U]
        return np.asarray((U * whole - (U - 1) * without).mean(0), np.float64)


def in_common(samples: Mapping[str, Sample]) -> dict[str, Sample]:
    """The units that were measured for every model and seed: what models are compared on."""
    n_units = {sample.statistics.shape[1] for sample in samples.values()}
    if len(n_units) > 1:
        raise ValueError(f"models were evaluated on different data: {sorted(n_units)} units")
    known = [~np.isnan(sample.statistics).any(axis=(0, 2)) for sample in samples.values()]  # [U] each
    kept = np.logical_and.reduce(known)
    return {name: sample._replace(statistics=sample.statistics[:, kept]) for name, sample in samples.items()}


def interval(sample: Sample) -> tuple[float, float] | None:
    """The 95 % interval of a score; None: a single unit tells nothing."""
    [known] = in_common({"": sample}).values()
    t, U = known.units, known.statistics.shape[1]
    if U < 2 or not np.isfinite(t).all():
        return None
    seeds = _of_seeds(known)
    if known.formula == "rate":
        trials = _trials(known, t.var() / U + sum(part for part, _ in seeds))
        return wilson(known.score, trials, _reach(t, seeds).quantile if seeds else None)
    q, error = _reach(t, seeds)
    low, reach = known.score - q * error, q * error
    return (max(low, 0.0) if (known.statistics >= 0).all() else low), known.score + reach


def _trials(sample: Sample, variance: float) -> float:
    """How many independent trials a rate is as sure as; of units that are all alike, so many as there are units."""
    p, counts = sample.score, sample.statistics[..., 1].mean(0)  # [U]
    return float(p * (1 - p) / variance if variance > 0 else counts.sum() ** 2 / (counts**2).sum())


def wilson(p: float, n: float, q: float | None = None) -> tuple[float, float]:
    """The interval of a rate p seen in n trials (Wilson 1927).

    >>> [round(end, 3) for end in wilson(0.0, 10)], [round(end, 3) for end in wilson(0.5, 10)]
    ([0.0, 0.278], [0.237, 0.763])
    """
    z = (q or student(math.inf)) ** 2 / n
    middle, reach = (p + z / 2) / (1 + z), math.sqrt(p * (1 - p) * z + z * z / 4) / (1 + z)
    return max(0.0, middle - reach), min(1.0, middle + reach)


class Reach(NamedTuple):
    """q and e."""

    quantile: float
    error: float


def _of_seeds(*samples: Sample) -> list[tuple[float, int]]:
    """The squared error that seeds bring in, and its degrees of freedom, for each model that has several."""
    scores = [sample.scores for sample in samples if len(sample.scores) > 1]
    return [(float(each.var(ddof=1)) / len(each), len(each) - 1) for each in scores]


def _reach(units: Array, seeds: list[tuple[float, int]]) -> Reach:
    """For an error that is made up of that of units and those of seeds."""
    parts = [(float(units.var(ddof=1)) / len(units), len(units) - 1), *seeds]
    whole, below = sum(part for part, _ in parts), sum(part**2 / degrees for part, degrees in parts)
    return Reach(student(whole**2 / below if below > 0 else math.inf), math.sqrt(whole))


def student(degrees: float) -> float:
    """What |t| exceeds with a probability of 5 %, t of Student's distribution: sqrt(n) tan a, a ~ cos^(n-1).

    >>> [round(student(n), 3) for n in (1, 2, 9, 1e9, math.inf)]
    [12.706, 4.303, 2.262, 1.96, 1.96]
    """
    n = min(degrees, 1e6)
    a = np.linspace(0.0, math.pi / 2, 20_001) * (1.0 if n < 100 else 20 / math.sqrt(n))
    density = np.cos(np.minimum(a, math.pi / 2)) ** (n - 1)
    mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return float(math.sqrt(n) * math.tan(np.interp(LEVEL, mass / mass[-1], a)))


def is_better(metric: Metric, one: Sample, other: Sample) -> bool:
    """Whether `one` has the significantly better score, on the units that both were measured on."""
    one, other = in_common({"one": one, "other": other}).values()
    t, other_t = one.units, other.units  # [U]
    d = t - other_t
    if len(d) < 2 or not np.isfinite(d).all() or metric.loss(one.score - other.score) >= 0:
        return False
    d[np.abs(d) <= SAME * max(np.abs(t).max(), np.abs(other_t).max())] = 0.0
    if flipped(d) >= 1 - LEVEL:
        return False
    q, error = _reach(d, seeds := _of_seeds(one, other))
    return not seeds or abs(one.score - other.score) > q * error


def flipped(d: Array) -> float:
    """The share of ways to flip the signs of d that give at least as large a sum, equal ones by half.

    >>> flipped(np.ones(3)), flipped(np.array([1.0, -1.0]))
    (0.125, 0.75)
    """
    d = _grouped(d[d != 0])
    if not len(d):
        return 1.0
    sums = np.abs(np.concatenate([signs @ d for signs in _signs(len(d))]))
    seen = abs(d.sum())
    equal = np.abs(sums - seen) <= SAME * np.abs(d).sum()
    return float(((sums > seen) & ~equal).mean() + equal.mean() / 2)


def _signs(n: int) -> list[Array]:
    """Ways to flip n signs, [.., n] each: all, or the given one and many at random, always the same."""
    if n <= FEW:
        return [np.array(list(product((1.0, -1.0), repeat=n)))]
    random = np.random.default_rng(0)
    return [np.ones((1, n)), *(random.choice((1.0, -1.0), size=(AT_ONCE, n)) for _ in range(FLIPS // AT_ONCE))]


def _grouped(values: Array) -> Array:
    """[U] with neighbours added up, so that no more than MOST_UNITS are left."""
    if len(values) <= MOST_UNITS:
        return values
    edges = np.linspace(0, len(values), MOST_UNITS, endpoint=False).astype(int)
    return np.asarray(np.add.reduceat(values, edges), np.float64)
