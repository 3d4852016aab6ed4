"""Naive Bayes: counts of short runs of tokens, each as if it came by itself: the classical answer to texts.

    log p(c | x) = log p(c) + sum_g count(g) log p(g | c) + const        p(g | c) = (n_{g,c} + a) / (n_c + a G)

Multinomial naive Bayes (McCallum & Nigam 1998) on all runs g of 1 to N tokens, of which pairs help most (Wang & Manning
2012), solved by counting; an n-gram is counted once a text when `once`.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from pydantic import Field
from torch import Tensor

from unrolled.core.config import Config as Base
from unrolled.core.errors import DataError
from unrolled.layers.grams import OfGrams

KIND = "encoder"
INPUT = "tokens"
ANSWERS = "whole"
OWNS_HEAD = True
REFERENCE = "McCallum & Nigam 1998; Wang & Manning 2012"
ALIASES = ("nb", "bayes", "multinomial-nb")
PRESET = "thorough"


class Config(Base):
    longest: int | None = Field(None, ge=1, le=8)
    """N: tokens of the longest n-gram; none: 4 where there are less than 1,000 different tokens, as of characters, and
    2 otherwise, as of words."""
    n_features: int = Field(200_000, ge=1)
    """The most n-grams that are kept, those of the most examples; fewer where there are many classes."""
    smoothing: float = Field(1.0, gt=0)
    """a: what is added to every count."""
    once: bool = True
    """Whether an n-gram counts once in a text, however often it is there."""


TINY = Config(longest=2, n_features=50)


class NaiveBayes(OfGrams):
    """Tokens x [B, T] with mask [B, T] -> log p(c, x) [B, 1, C] but for what is the same for all classes."""

    TABLES = ("keys", "given")
    given: Tensor  # [G, C] log p(g | c)
    prior: Tensor  # [C] log p(c)

    def __init__(self, config: Config, n_tokens: int, d_out: int) -> None:
        super().__init__(n_tokens, d_out, config.longest, config.n_features)
        self.smoothing, self.once = config.smoothing, config.once
        self.register_buffer("given", torch.zeros(0, d_out))
        self.register_buffer("prior", torch.zeros(d_out))

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        used, z = self.counts(x, mask, self.prior)  # [U], [B, U]
        y = (z.clamp(max=1) if self.once else z) @ self.given[used] + self.prior  # [B, C]
        return y.unsqueeze(1), mask.new_ones(len(mask), 1)

    def solve(self, batches: Iterable[tuple[Tensor, Tensor, Tensor]]) -> None:
        """From tokens, mask and classes [B] of all examples."""
        z, keys, y = self.count(batches)  # [n, G], [G], [n]
        if y.is_floating_point():
            raise DataError("naive-bayes chooses one class; these answers are sets or numbers")
        if self.once:
            z.data[:] = 1
        hot = torch.nn.functional.one_hot(y, self.d_out).double()  # [n, C]
        counts = torch.from_numpy(z.T @ hot.numpy()) + self.smoothing  # [G, C]
        classes = hot.sum(0) + self.smoothing  # [C]
        self.keep({"keys": torch.from_numpy(keys), "given": (counts / counts.sum(0)).log()})
        self.prior.copy_((classes / classes.sum()).log())


def make(config: Config, d_in: int, d_out: int) -> NaiveBayes:
    return NaiveBayes(config, d_in, d_out)
