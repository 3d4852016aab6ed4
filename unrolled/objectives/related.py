"""Pairs of words that a text uses together, and whether vectors tell them from random pairs.

pair (a, b) meets n(a, b) times within the window; PMI(a, b) = log n(a, b) n / (n(a) n(b))
related: the pairs of frequent words with the largest PMI; random: the same a with the b of another pair
area = P(cos(a, b) > cos(a, random b)), ties counted as half                  (area under the ROC curve)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import UsageError

LEAST, MOST = 3, 1000  # times that a pair meets, at least, and pairs at most
FEWEST = 10  # pairs of which an area means something

Whole = NDArray[np.int64]


def related_pairs(words: NDArray[np.int32], lines: NDArray[np.int32], window: int, first: int) -> Whole | None:
    """[n, 3] (a, b, another word), the strongest first; words have ids from `first` on. None: there are too few."""
    w = words.astype(np.int64)
    size, codes = int(w.max(initial=0)) + 1, []
    for away in range(1, min(window, len(w) - 1) + 1):
        near = (lines[away:] == lines[:-away]) & (w[away:] != w[:-away]) & (w[away:] >= first) & (w[:-away] >= first)
        a, b = w[:-away][near], w[away:][near]
        codes.append(np.minimum(a, b) * size + np.maximum(a, b))
    pairs, n = np.unique(np.concatenate([*codes, np.empty(0, np.int64)]), return_counts=True)
    often = n >= LEAST
    pairs, n = pairs[often], n[often]
    counts = np.bincount(w, minlength=size)
    a, b = pairs // size, pairs % size
    strength = np.log(n * len(w) / (counts[a] * counts[b] * 2.0 * window))
    chosen = np.lexsort((pairs, -strength))[:MOST]
    chosen = chosen[strength[chosen] > 0]
    if len(chosen) < FEWEST:
        return None
    known = set(pairs.tolist())
    a, b = a[chosen], b[chosen]
    return np.stack([a, b, _others(a, b, known, size)], axis=1)


def _others(a: Whole, b: Whole, known: set[int], size: int) -> Whole:
    """For each a the b of another pair, which a does not meet, by a fixed shift."""
    random, n = np.random.default_rng(0), len(a)
    found = b[random.permutation(n)]
    for _ in range(20):
        meets = [int(min(i, j) * size + max(i, j)) in known or i == j for i, j in zip(a.tolist(), found.tolist())]
        again = np.flatnonzero(meets)
        if not len(again):
            break
        found[again] = b[random.integers(n, size=len(again))]
    return found


def area(units: NDArray[np.float64], pairs: Whole, first: int) -> float:
    """How often related words have the larger cosine; units [n, D] are vectors of length 1, of the ids from `first` on.

    >>> area(np.array([[1.0, 0], [0.9, 0.1], [0, 1]]), np.array([[4, 5, 6]]), 4)
    1.0
    """
    if not len(pairs):
        raise UsageError("there are no pairs to compare")
    a, b, other = (units[pairs[:, column] - first] for column in range(3))
    near, far = np.sort((a * b).sum(1)), np.sort((a * other).sum(1))
    below = np.searchsorted(far, near, "left") + np.searchsorted(far, near, "right")
    return float(below.sum() / (2 * len(near) * len(far)))
