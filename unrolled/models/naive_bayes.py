"""Naive Bayes: counts of tokens, each as if it came by itself: the classical answer to texts.

    log p(c | x) = log p(c) + sum_w count(w) log p(w | c) + const        p(w | c) = (n_{w,c} + a) / (n_c + a V)

Multinomial naive Bayes (McCallum & Nigam 1998), solved by counting; a word is counted once a text when `once`.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from pydantic import Field
from torch import Tensor, nn

from unrolled.core.config import Config as Base
from unrolled.core.errors import DataError

KIND = "table"
FEATURES = "counts"
OWNS_HEAD = True
REFERENCE = "McCallum & Nigam 1998"
PRESET = "thorough"


class Config(Base):
    smoothing: float = Field(1.0, gt=0)
    """a: what is added to every count."""
    once: bool = True
    """Whether a token counts once in a text, however often it is there."""


TINY = Config()


class NaiveBayes(nn.Module):
    """Counts x [..., V] -> log p(c, x) [..., C] but for what is the same for all classes."""

    prior: Tensor  # [C] log p(c)
    given: Tensor  # [V, C] log p(w | c)

    def __init__(self, config: Config, d_in: int, d_out: int) -> None:
        super().__init__()
        self.smoothing, self.once = config.smoothing, config.once
        self.register_buffer("prior", torch.zeros(d_out))
        self.register_buffer("given", torch.zeros(d_in, d_out))
        self.d_out = d_out

    def forward(self, x: Tensor) -> Tensor:
        counts = (x > 0).to(x) if self.once else x
        return counts @ self.given.to(x) + self.prior.to(x)

    def solve(self, batches: Iterable[tuple[Tensor, Tensor]]) -> None:
        counts = torch.zeros(self.given.shape, dtype=torch.float64)
        classes = torch.zeros(self.d_out, dtype=torch.float64)
        for x, y in batches:
            if y.is_floating_point():
                raise DataError("naive-bayes chooses one class; these answers are sets or numbers")
            x = (x > 0).double() if self.once else x.double()
            hot = torch.nn.functional.one_hot(y, self.d_out).double()  # [B, C]
            counts += x.T @ hot
            classes += hot.sum(0)
        counts += self.smoothing
        self.prior.copy_(((classes + self.smoothing) / (classes + self.smoothing).sum()).log())
        self.given.copy_((counts / counts.sum(0)).log())


def make(config: Config, d_in: int, d_out: int) -> NaiveBayes:
    return NaiveBayes(config, d_in, d_out)
