"""A linear model of tokens and pairs of tokens, fitted in a moment: how much a way to cut texts lets a model see.

    z_g = sqrt(count(g)) log((1 + n) / (1 + n_g)), then z / |z|         g all tokens and pairs, n_g examples with g
    W = argmin |Z W - Y|^2 + a |W|^2                                    Y one-hot classes, or numbers less their mean

Solved by conjugate gradients (Hestenes & Stiefel 1952). n-grams share 2^18 columns by their hash.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

COLUMNS = 1 << 18
STRENGTH, ROUNDS = 1.0, 15
MIX = 0x9E3779B1


class Texts:
    """Token ids of examples after each other, where each begins, and their targets: [n] classes or [n, k] numbers."""

    def __init__(self, ids: NDArray[Any], offsets: NDArray[Any], targets: NDArray[Any]) -> None:
        self.ids, self.offsets, self.targets = ids.astype(np.int64), offsets, targets

    def counts(self) -> Any:
        """sqrt(count) of each n-gram in each example, a sparse matrix [n, COLUMNS]."""
        from scipy.sparse import csr_matrix

        n = len(self.offsets) - 1
        rows = np.repeat(np.arange(n), np.diff(self.offsets))
        pairs = (self.ids[:-1] * MIX + self.ids[1:] * 31 + 7)[rows[:-1] == rows[1:]]
        columns = np.concatenate([self.ids * MIX, pairs]) >> 3
        where = np.concatenate([rows, rows[:-1][rows[:-1] == rows[1:]]])
        found = csr_matrix((np.ones(len(where)), (where, columns % COLUMNS)), shape=(n, COLUMNS))
        return found.sqrt()


def linear_error(known: Texts, others: Texts) -> tuple[float, float]:
    """The error on other examples, and its standard error: the share of wrong classes, or the mean square relative to
    that of the mean."""
    z, unseen = known.counts(), others.counts()
    having = z.getnnz(axis=0)  # examples that have each n-gram
    kept = np.flatnonzero(having > 1)
    z, unseen, weights = z[:, kept], unseen[:, kept], np.log((1 + z.shape[0]) / (1 + having[kept]))
    z, unseen = _normalised(z.multiply(weights).tocsr()), _normalised(unseen.multiply(weights).tocsr())
    classes = known.targets.ndim == 1
    size = int(max(known.targets.max(), others.targets.max())) + 1 if classes else 0
    y = np.eye(size)[known.targets] if classes else known.targets.astype(np.float64)
    mean = y.mean(0)
    said = unseen @ _solve(z, y - mean) + mean  # [m, C]
    if classes:
        wrong = (said.argmax(1) != others.targets).astype(np.float64)
    else:
        true = others.targets[:, : y.shape[1]]  # of sets of classes, those that are known
        spread = np.square(true - mean).mean()
        wrong = np.square(said - true).mean(1) / max(spread, 1e-12)
    return float(wrong.mean()), float(wrong.std() / np.sqrt(len(wrong)))


def _normalised(z: Any) -> Any:
    norm = np.sqrt(np.asarray(z.multiply(z).sum(1))).clip(min=1e-12)
    return z.multiply(1 / norm).tocsr()


def _solve(z: Any, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """W [G, C], all columns at once."""
    w = np.zeros((z.shape[1], y.shape[1]))
    r = z.T @ y
    p, rr = r.copy(), np.square(r).sum(0)
    for _ in range(ROUNDS):
        q = z.T @ (z @ p) + STRENGTH * p
        step = rr / np.maximum((p * q).sum(0), 1e-30)
        w += step * p
        r -= step * q
        new = np.square(r).sum(0)
        if new.max() < 1e-8 * max(len(y), 1):
            break
        p, rr = r + new / np.maximum(rr, 1e-30) * p, new
    return w
