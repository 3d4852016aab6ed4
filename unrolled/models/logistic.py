"""Logistic regression on tf-idf weighted n-grams; fitted in closed form.

    z_g = count(g) (log((1 + n) / (1 + n_g)) + 1), then z / |z|         g all runs of 1 to N tokens, n_g examples with g
    log p(c | x) = z W_c + b_c - log sum_k exp(z W_k + b_k)             a sigmoid each where there are several classes
    W, b = argmin  r/2 |W|^2 - sum_i w_{c_i} log p(c_i | x_i)

Cox (1958) on the weights of Spärck Jones (1972). Unless it is set, r is the one of eight strengths whose errors on
validation data are fewest (on a part of the training data with folds); layers/counting/regularised.py finds the
minimum.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from unrolled.core.config import Config as Base
from unrolled.core.errors import DataError
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.task import Known
from unrolled.layers.counting import regularised
from unrolled.layers.counting.ngram_features import OfGrams
from unrolled.layers.counting.regularised import Examples
from unrolled.objectives.answers import balanced_weights


class Config(Base):
    longest: int | None = Field(None, ge=1, le=8)
    """N: length of the longest n-gram; none: 4 for vocabularies of less than 1,000 tokens, such as characters,
    otherwise 2, such as for words."""
    n_features: int = Field(200_000, ge=1)
    """Maximum number of n-grams, the most frequent ones; fewer if there are many classes."""
    regularisation: float | None = Field(None, gt=0)
    """r: strength of the L2 regularisation; none: chosen on validation data, from 3 to 0.001."""
    class_weights: float = Field(0.0, ge=0, le=1)
    """How much rare classes are upweighted: 0: all examples count the same; 1: all classes count the same."""


class Logistic(OfGrams):
    """Tokens x [B, T] with mask [B, T] -> logits [B, 1, C]."""

    TABLES: ClassVar[tuple[str, ...]] = ("keys", "idf", "weight")
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
        z = self._normalised(z * self.idf[used], self.keys[used])
        y = z @ self.weight[used] + self.bias  # [B, C]
        return y.unsqueeze(1), mask.new_ones(mask.shape[0], 1)

    def _normalised(self, z: Tensor, keys: Tensor) -> Tensor:
        """z / |z|, of two sets of n-grams each by its own norm."""
        second = self.second(keys.cpu().numpy())
        if second is None:
            return F.normalize(z, dim=1)
        of_second = torch.from_numpy(second).to(z.device)
        return sum((F.normalize(z.masked_fill(~part, 0.0), dim=1) for part in (of_second, ~of_second)), z * 0)

    # ---- solving

    def solve(self, batches: Known, held_out: Known = ()) -> dict[str, float]:
        """From tokens, mask and classes [B], or sets [B, C], of all examples; says which r was chosen."""
        counts, keys, y = self.count(batches)  # [n, G], [G], [n, ..]
        if y.is_floating_point() and not bool(((y == 0) | (y == 1)).all()):
            raise DataError("logistic predicts classes, but these targets are numbers")
        idf = np.log((1 + len(y)) / (1 + np.bincount(counts.indices, minlength=len(keys)))) + 1
        second = self.second(keys)
        known, held = Examples(_tfidf(counts, idf, second), y.numpy()), list(held_out)
        weights = None
        if self.config.class_weights and not y.is_floating_point():
            seen = torch.bincount(y, minlength=self.d_out)
            weights = balanced_weights(seen, self.config.class_weights).double().numpy()
        strength, chosen = self.config.regularisation, {}
        if strength is None:
            others = None
            if held:
                counts, y = self.count_in(held, keys)
                others = Examples(_tfidf(counts, idf, second), y.numpy())
            strength = regularised.choose(known, others, self.d_out, weights)
            chosen = {"regularisation": strength}
        found = regularised.minimum(known, self.d_out, weights, strength)
        W, b = torch.from_numpy(found.W), torch.from_numpy(found.b)
        self.keep({"keys": torch.from_numpy(keys), "idf": torch.from_numpy(idf), "weight": W})
        self.bias.copy_(b)
        return chosen


def _tfidf(counts: Any, idf: Any, second: Any = None) -> Any:
    """z / |z| of sparse counts [n, G]; of two sets of n-grams each by its own norm."""
    from sklearn.preprocessing import normalize

    z = counts.multiply(idf).tocsr()
    parts = [z] if second is None else [z.multiply(part).tocsr() for part in (second, ~second)]
    return sum(normalize(part) for part in parts)


def make(config: Config, sizes: Sizes) -> Logistic:
    return Logistic(config, sizes.d_in, sizes.d_out)


MODEL = ModelSpec(
    summary="logistic regression on tf-idf weighted n-grams; fitted in closed form",
    kind="encoder",
    config=Config,
    tiny=Config(longest=2, n_features=50),
    make=make,
    reference="Cox 1958; Spärck Jones 1972",
    aliases=("logistic-regression", "logreg", "maxent"),
    reads=("tokens",),
    outputs=("whole",),
    owns_head=True,
    bags="also",
    closed_form=("class", "classes"),
)
