"""Prior, a baseline: class frequencies (or the mean target) of the training data, whatever the input.

    p(c) = (n_c + 1) / (n + C)

Several classes at once have one such probability each; numbers are answered by their mean.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.core.causal import Encoder
from unrolled.core.config import Config as Base
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.task import Known


class Config(Base):
    """There is nothing to choose."""


class Prior(Encoder):
    """x [B, S, ..] -> the same answer [B, 1, C] for all: log p of classes, logits of sets, means of numbers."""

    answer: Tensor  # [C]

    def __init__(self, d_out: int) -> None:
        super().__init__()
        self.register_buffer("answer", torch.zeros(d_out))
        self.d_out = d_out

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        return self.answer.expand(mask.shape[0], 1, -1), mask.new_ones(mask.shape[0], 1)

    def solve(self, batches: Known, held_out: Known = ()) -> None:
        y = torch.cat([answers for _, _, answers in batches])  # [n] classes, or [n, C]
        if not y.is_floating_point():
            counts = torch.bincount(y[y >= 0], minlength=self.d_out).double() + 1
            self.answer.copy_((counts / counts.sum()).log())
        elif bool(((y == 0) | (y == 1)).all()):
            p = (y.double().sum(0) + 1) / (len(y) + 2)
            self.answer.copy_(p.logit())
        else:
            self.answer.copy_(y.double().mean(0))


def make(config: Config, sizes: Sizes) -> Prior:
    return Prior(sizes.d_out)


MODEL = ModelSpec(
    summary="baseline: class frequencies (or the mean target) of the training data, whatever the input",
    kind="encoder",
    config=Config,
    tiny=Config(),
    make=make,
    reference="the majority class, the mean",
    aliases=("majority", "dummy", "most-frequent", "mean"),
    reads=("tokens", "numbers"),
    outputs=("whole", "context"),
    owns_head=True,
    bags="also",
    closed_form=("class", "classes", "numbers", "context"),
)
