"""Logistic regression on tf-idf n-grams: one weight for each short run of tokens and each class; solved, not descended.

    z_g = count(g) (log((1 + n) / (1 + n_g)) + 1), then z / |z|         g all runs of 1 to N tokens, n_g examples with g
    log p(c | x) = z W_c + b_c - log sum_k exp(z W_k + b_k)             a sigmoid each where there are several classes
    W, b = argmin  r/2 |W|^2 - sum_i w_{c_i} log p(c_i | x_i)

Cox (1958) on the weights of Spärck Jones (1972); the minimum is found by scikit-learn. <start> and <stop> stand around
every example, so that beginnings and ends are known. N-grams are numbers in base V + 1, which no other n-gram shares.
The solver is SAGA (Defazio, Bach & Lacoste-Julien 2014), which for many classes is the fastest that was tried.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from unrolled.core.config import Config as Base
from unrolled.core.errors import DataError
from unrolled.layers.stored import Stored
from unrolled.objectives.answers import balanced_weights

KIND = "encoder"
INPUT = "tokens"
ANSWERS = "whole"
OWNS_HEAD = True
REFERENCE = "Cox 1958; Spärck Jones 1972"
PRESET = "thorough"

START, STOP = 2, 3  # ids that every codec gives to <start> and <stop>
FEW = 1000  # different tokens that are taken for characters
MOST_WEIGHTS = 1 << 21  # n-grams times classes, so that the solver's memory is bounded
PENDING = 1 << 21  # n-grams that wait to be counted
KEPT = 4  # times as many n-grams as are wanted are held while they are counted
PASSES, CLOSE = 60, 1e-3  # over the data at most, and the relative change of weights at which it ends
FEWEST, WORK = 10, 400_000_000  # passes over much data, which together move about so many weights

Rows = NDArray[np.int64]


class Config(Base):
    longest: int | None = Field(None, ge=1, le=8)
    """N: tokens of the longest n-gram; none: 4 where there are less than 1,000 different tokens, as of characters, and
    2 otherwise, as of words."""
    n_features: int = Field(200_000, ge=1)
    """The most n-grams that are kept, those of the most examples; fewer where there are many classes."""
    regularisation: float = Field(0.1, gt=0)
    """r: how much large weights cost, beside one example."""
    class_weights: float = Field(0.0, ge=0, le=1)
    """How far rare classes count for more: 0 all examples alike, 1 all classes alike."""


TINY = Config(longest=2, n_features=50)


class Grams(NamedTuple):
    """The n-grams of some examples: which are there, and where how often."""

    keys: Rows  # [U] different ones, in order
    rows: Rows  # [M] the example
    numbers: Rows  # [M] the n-gram, as its place in `keys`
    counts: Rows  # [M]


class Logistic(Stored):
    """Tokens x [B, T] with mask [B, T] -> logits [B, 1, C]."""

    TABLES = ("keys", "idf", "weight")
    keys: Tensor  # [G] n-grams, in order
    idf: Tensor  # [G]
    weight: Tensor  # [G, C]
    bias: Tensor  # [C]

    def __init__(self, config: Config, n_tokens: int, d_out: int) -> None:
        super().__init__()
        self.config, self.d_out = config, d_out
        self.base = max(n_tokens, STOP + 1) + 1
        wanted = config.longest or (4 if n_tokens < FEW else 2)
        self.longest = min(wanted, int(63 / math.log2(self.base)))  # longer ones would not fit into 64 bits
        self.register_buffer("keys", torch.zeros(0, dtype=torch.long))
        self.register_buffer("idf", torch.zeros(0))
        self.register_buffer("weight", torch.zeros(0, d_out))
        self.register_buffer("bias", torch.zeros(d_out))

    def fault(self, tables: dict[str, Tensor]) -> str:
        keys, idf, weight = (tables[name] for name in self.TABLES)
        if keys.dim() != 1 or idf.shape != keys.shape or weight.shape != (len(keys), self.d_out):
            return "the sizes of its tables do not fit together"
        return "its n-grams are not in order" if bool((keys.diff() <= 0).any()) else ""

    def grams(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """All n-grams of all examples as numbers [M], and the example [M] that each is in."""
        B, T = mask.shape
        n = mask.sum(1)  # [B]
        s = x.new_full((B, T + 2), START)  # [B, T + 2]
        s[:, 1 : T + 1] = x.masked_fill(~mask, 0)
        s[torch.arange(B, device=x.device), n + 1] = STOP
        at = torch.arange(T + 2, device=x.device)  # [T + 2]
        row = torch.arange(B, device=x.device)[:, None].expand(B, T + 2)
        one = key = s + 1
        is_token = (at >= 1) & (at <= n[:, None])  # [B, T + 2]
        found = [(key[is_token], row[is_token])]
        for N in range(2, self.longest + 1):
            key = key[:, :-1] * self.base + one[:, N - 1 :]  # [B, T + 3 - N]
            real = at[N - 1 :] <= n[:, None] + 1
            found.append((key[real], row[:, : key.shape[1]][real]))
        return torch.cat([keys for keys, _ in found]), torch.cat([rows for _, rows in found])

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        key, row = self.grams(x, mask)
        place = torch.searchsorted(self.keys, key).clamp(max=max(len(self.keys) - 1, 0))
        known = self.keys[place] == key if len(self.keys) else torch.zeros_like(key, dtype=torch.bool)
        used, local = place[known].unique(return_inverse=True)  # [U], [M]
        z = self.idf.new_zeros(len(x), len(used))  # [B, U]
        z.index_put_((row[known], local), z.new_ones(()), accumulate=True)
        z = F.normalize(z * self.idf[used], dim=1)
        y = z @ self.weight[used] + self.bias  # [B, C]
        return y.unsqueeze(1), mask.new_ones(len(mask), 1)

    # ---- solving

    def solve(self, batches: Iterable[tuple[Tensor, Tensor, Tensor]]) -> None:
        """From tokens, mask and classes [B], or sets [B, C], of all examples."""
        held = [(x.int(), mask, y) for x, mask, y in batches]
        y = torch.cat([y for _, _, y in held])
        if y.is_floating_point() and not bool(((y == 0) | (y == 1)).all()):
            raise DataError("logistic chooses classes; these answers are numbers")
        most = min(self.config.n_features, max(1, MOST_WEIGHTS // self.d_out))
        keys, seen = most_frequent((self._counted(x, mask) for x, mask, _ in held), most)
        idf = np.log((1 + len(y)) / (1 + seen)) + 1
        z = matrix((self._counted(x, mask) for x, mask, _ in held), [len(x) for x, _, _ in held], keys, idf)
        W, b = self._classes(z, y) if not y.is_floating_point() else self._sets(z, y)
        self.keep({"keys": torch.from_numpy(keys), "idf": torch.from_numpy(idf), "weight": torch.from_numpy(W)})
        self.bias.copy_(torch.from_numpy(b))

    def _counted(self, x: Tensor, mask: Tensor) -> Grams:
        key, row = (values.cpu().numpy() for values in self.grams(x.long(), mask))
        keys, number = np.unique(key, return_inverse=True)
        pair, counts = np.unique(row * max(len(keys), 1) + number, return_counts=True)
        rows, numbers = np.divmod(pair, max(len(keys), 1))
        return Grams(keys, rows, numbers, counts)

    def _classes(self, z: Any, y: Tensor) -> tuple[NDArray[Any], NDArray[Any]]:
        """One of C: W [G, C], b [C]; a class without examples is as probable as one example less than one."""
        counts = torch.bincount(y, minlength=self.d_out)
        W, b = np.zeros((z.shape[1], self.d_out)), np.full(self.d_out, -math.log(len(y) + self.d_out))
        there = np.flatnonzero(counts.numpy())
        if len(there) == 1:
            b[there] = 0.0
            return W, b
        weights = balanced_weights(counts, self.config.class_weights)[y].numpy()
        found, bias = self._minimum(z, y.numpy(), weights)  # [G, C'], [C']
        W[:, there], b[there] = found, bias
        return W, b

    def _sets(self, z: Any, y: Tensor) -> tuple[NDArray[Any], NDArray[Any]]:
        """Each class by itself: its log p less that of its absence."""
        W = np.zeros((z.shape[1], self.d_out))
        share = (y.double().sum(0) + 1) / (len(y) + 2)
        b = share.logit().numpy()  # [C], where all examples say the same
        for c, own in enumerate(y.long().numpy().T):
            if 0 < own.sum() < len(own):
                found, bias = self._minimum(z, own, None)  # [G, 2], [2]
                W[:, c], b[c] = found[:, 1] - found[:, 0], bias[1] - bias[0]
        return W, b

    def _minimum(self, z: Any, y: Any, weights: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """W [G, C'], b [C'] for the classes that are in y, in order."""
        from sklearn.linear_model import LogisticRegression

        C = 1 / self.config.regularisation
        passes = min(PASSES, max(FEWEST, WORK // max(1, z.nnz * len(np.unique(y)))))
        solver = LogisticRegression(C=C, solver="saga", max_iter=passes, tol=CLOSE, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a minimum that is not quite reached is good enough for a baseline
            solver.fit(z, y, sample_weight=weights)
        W, b = solver.coef_.T, solver.intercept_  # [G, C'] or [G, 1]
        if W.shape[1] == 1:  # of two classes the second alone: divided among both
            W, b = np.concatenate([-W / 2, W / 2], axis=1), np.concatenate([-b / 2, b / 2])
        return W, b


def most_frequent(counted: Iterable[Grams], most: int) -> tuple[Rows, Rows]:
    """The n-grams of the most examples, in order, and how many examples have each; memory is bounded."""
    keys, seen = np.zeros(0, np.int64), np.zeros(0, np.int64)
    waiting: list[Grams] = []

    def merge(keep: int) -> tuple[Rows, Rows]:
        found, place = np.unique(np.concatenate([keys, *(each.keys for each in waiting)]), return_inverse=True)
        own = [np.bincount(each.numbers, minlength=len(each.keys)) for each in waiting]
        n = np.bincount(place, np.concatenate([seen, *own]), minlength=len(found)).astype(np.int64)
        chosen = np.sort(np.argsort(-n, kind="stable")[:keep])
        return found[chosen], n[chosen]

    for each in counted:
        waiting.append(each._replace(rows=each.rows[:0], counts=each.counts[:0]))
        if sum(len(one.numbers) for one in waiting) > PENDING:
            keys, seen = merge(KEPT * most)
            waiting.clear()
    return merge(most)


def matrix(counted: Iterable[Grams], sizes: list[int], keys: Rows, idf: NDArray[Any]) -> Any:
    """z of all examples, each of length 1, as a sparse matrix [n, G]."""
    from scipy.sparse import csr_matrix

    parts = list(_entries(counted, sizes, keys, idf))
    rows, columns, values = (np.concatenate(each) for each in zip(*parts))
    return csr_matrix((values, (rows, columns)), shape=(sum(sizes), len(keys)))


def _entries(
    counted: Iterable[Grams], sizes: list[int], keys: Rows, idf: NDArray[Any]
) -> Iterator[tuple[Any, Any, Any]]:
    first = 0
    for grams, size in zip(counted, sizes):
        place = np.searchsorted(keys, grams.keys).clip(max=len(keys) - 1)  # [U]
        known = (keys[place] == grams.keys)[grams.numbers]  # [M]
        rows, columns = grams.rows[known], place[grams.numbers[known]]
        values = grams.counts[known] * idf[columns]
        length = np.sqrt(np.bincount(rows, values**2, minlength=size))
        yield (first + rows).astype(np.int32), columns.astype(np.int32), values / length[rows]
        first += size


def make(config: Config, d_in: int, d_out: int) -> Logistic:
    return Logistic(config, d_in, d_out)
