"""Logistic regression on tf-idf n-grams: one weight for each short run of tokens and each class; solved, not descended.

    z_g = count(g) (log((1 + n) / (1 + n_g)) + 1), then z / |z|         g all runs of 1 to N tokens, n_g examples with g
    log p(c | x) = z W_c + b_c - log sum_k exp(z W_k + b_k)             a sigmoid each where there are several classes
    W, b = argmin  r/2 |W|^2 - sum_i w_{c_i} log p(c_i | x_i)

Cox (1958) on the weights of Spärck Jones (1972); the minimum is found by scikit-learn. The solver is SAGA (Defazio et
al. 2014), which for many classes is the fastest that was tried.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from unrolled.core.config import Config as Base
from unrolled.core.errors import DataError
from unrolled.layers.grams import OfGrams
from unrolled.objectives.answers import balanced_weights

KIND = "encoder"
INPUT = "tokens"
ANSWERS = "whole"
OWNS_HEAD = True
REFERENCE = "Cox 1958; Spärck Jones 1972"
ALIASES = ("logistic-regression", "logreg", "maxent")
PRESET = "thorough"

PASSES, CLOSE = 60, 1e-3  # over the data at most, and the relative change of weights at which it ends
FEWEST, WORK = 10, 400_000_000  # passes over much data, which together move about so many weights


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


class Logistic(OfGrams):
    """Tokens x [B, T] with mask [B, T] -> logits [B, 1, C]."""

    TABLES = ("keys", "idf", "weight")
    idf: Tensor  # [G]
    weight: Tensor  # [G, C]
    bias: Tensor  # [C]

    def __init__(self, config: Config, n_tokens: int, d_out: int) -> None:
        super().__init__(n_tokens, d_out, config.longest, config.n_features)
        self.config = config
        self.register_buffer("idf", torch.zeros(0))
        self.register_buffer("weight", torch.zeros(0, d_out))
        self.register_buffer("bias", torch.zeros(d_out))

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        used, z = self.counts(x, mask, self.bias)  # [U], [B, U]
        z = F.normalize(z * self.idf[used], dim=1)
        y = z @ self.weight[used] + self.bias  # [B, C]
        return y.unsqueeze(1), mask.new_ones(len(mask), 1)

    # ---- solving

    def solve(self, batches: Iterable[tuple[Tensor, Tensor, Tensor]]) -> None:
        """From tokens, mask and classes [B], or sets [B, C], of all examples."""
        from sklearn.preprocessing import normalize

        z, keys, y = self.count(batches)  # [n, G], [G], [n, ..]
        if y.is_floating_point() and not bool(((y == 0) | (y == 1)).all()):
            raise DataError("logistic chooses classes; these answers are numbers")
        idf = np.log((1 + len(y)) / (1 + np.bincount(z.indices, minlength=len(keys)))) + 1
        z = normalize(z.multiply(idf).tocsr())
        W, b = self._classes(z, y) if not y.is_floating_point() else self._sets(z, y)
        self.keep({"keys": torch.from_numpy(keys), "idf": torch.from_numpy(idf), "weight": torch.from_numpy(W)})
        self.bias.copy_(torch.from_numpy(b))

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


def make(config: Config, d_in: int, d_out: int) -> Logistic:
    return Logistic(config, d_in, d_out)
