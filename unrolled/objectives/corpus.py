"""Metrics of a whole set of units from statistics that were added over its units. Imports no torch.

    ratio    total / count                                                         statistics: total, count
    rate     the same, of what happens or not: between 0 and 1                     statistics: total, count
    chrf     (1 + b^2) P R / (b^2 P + R), b = 2; P, R: means over n = 1..6 of      of each n: n-grams of the text, of
             m_n / h_n and m_n / r_n, where both are there (Popovic 2015)          the reference, and of both (h, r, m)
    bleu     min(1, exp(1 - r / c)) (prod_{n=1..4} m_n / h_n)^(1/4)                c, r, m_1 .. m_4, h_1 .. h_4
             (Papineni et al. 2002); the k-th m_n that is 0 counts as 2^-k

A sum over the units of a resample gives the metric of that resample, which a mean of the metrics of its units is not.
chrF and BLEU are those of sacrebleu (Post 2018) and go from 0 to 100.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BETA, CHARACTERS, WORDS = 2, 6, 4  # chrF: weight of recall and longest n-gram; BLEU: longest n-gram


def ratio(sums: Array) -> Array:
    return _divided(sums[..., 0], sums[..., 1], np.nan)


def chrf(sums: Array) -> Array:
    h, r, m = (sums[..., i::3] for i in range(3))  # [.., 6]
    there = (h > 0) & (r > 0)
    n = np.maximum(there.sum(-1), 1)
    P = np.where(there, _divided(m, h), 0.0).sum(-1) / n
    R = np.where(there, _divided(m, r), 0.0).sum(-1) / n
    return 100 * _divided((1 + BETA**2) * P * R, BETA**2 * P + R)


def bleu(sums: Array) -> Array:
    c, r, m, h = sums[..., 0], sums[..., 1], sums[..., 2 : 2 + WORDS], sums[..., 2 + WORDS :]  # m, h [.., 4]
    missed = (m == 0) & (h > 0)
    smoothed = np.where(missed, 0.5 ** np.cumsum(missed, axis=-1), m)
    reached = np.asarray((h > 0).all(-1) & (m > 0).any(-1))
    log_p = np.log(np.where(reached[..., None], _divided(smoothed, h, 1.0), 1.0)).mean(-1)
    brevity = np.exp(np.minimum(0.0, 1 - _divided(r, c, 1.0)))
    return np.where(reached, 100 * brevity * np.exp(log_p), 0.0)


FORMULAS: dict[str, Callable[[Array], Array]] = {"ratio": ratio, "rate": ratio, "chrf": chrf, "bleu": bleu}


def value_of(formula: str, sums: Array) -> Array:
    """The metric [..] of sums of statistics [.., k].

    >>> float(value_of("ratio", np.array([3.0, 4.0])))
    0.75
    """
    return FORMULAS[formula](np.asarray(sums, np.float64))


def _divided(above: Array, below: Array, otherwise: float = 0.0) -> Array:
    """above / below, and `otherwise` where below is 0."""
    return np.divide(above, below, out=np.full(np.broadcast(above, below).shape, otherwise), where=below != 0)
