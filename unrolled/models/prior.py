"""Prior: how often each class was seen in training, whatever the input: what every other answer has to beat.

    p(c) = (n_c + 1) / (n + C)

Several classes at once have one such probability each; numbers are answered by their mean.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from unrolled.core.config import Config as Base

KIND = "table"
FEATURES = "nothing"
OWNS_HEAD = True
CLOSED_FORM = ("class", "classes", "numbers")
REFERENCE = "the majority class, the mean"
ALIASES = ("majority", "dummy", "most-frequent", "mean")
PRESET = "thorough"


class Config(Base):
    """There is nothing to choose."""


TINY = Config()


class Prior(nn.Module):
    """x [..., F] -> the same answer [..., C] for all: log p of classes, logits of sets, means of numbers."""

    answer: Tensor  # [C]

    def __init__(self, d_out: int) -> None:
        super().__init__()
        self.register_buffer("answer", torch.zeros(d_out))
        self.d_out = d_out

    def forward(self, x: Tensor) -> Tensor:
        return self.answer.to(x).expand(*x.shape[:-1], -1)

    def solve(self, batches: Iterable[tuple[Tensor, Tensor]]) -> None:
        y = torch.cat([answers for _, answers in batches])  # [n] classes, or [n, C]
        if not y.is_floating_point():
            counts = torch.bincount(y[y >= 0], minlength=self.d_out).double() + 1
            self.answer.copy_((counts / counts.sum()).log())
        elif bool(((y == 0) | (y == 1)).all()):
            p = (y.double().sum(0) + 1) / (len(y) + 2)
            self.answer.copy_(p.logit())
        else:
            self.answer.copy_(y.double().mean(0))


def make(config: Config, d_in: int, d_out: int) -> Prior:
    return Prior(d_out)
