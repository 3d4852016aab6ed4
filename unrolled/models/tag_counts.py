"""Tag counts, a baseline: the most frequent tag of each word, without context.

    p(t | w) = (n_{w,t} + a q_t) / (n_w + a)        q_t = the share of t among words that were seen once

A word that was never seen is like those that were seen once (Good 1953), so it gets q. Solved by counting.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from unrolled.core.causal import Encoder
from unrolled.core.compose import without_padding
from unrolled.core.config import Config as Base
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.task import Known


class Config(Base):
    smoothing: float = Field(0.5, gt=0)
    """a: additive smoothing towards the tag distribution q of words that occur once."""


class TagCounts(Encoder):
    """Words x [B, T], or [B, T, 1 + L] with their letters, which it does not read -> log p(t | w) [B, T, C]."""

    logp: Tensor  # [V, C]

    def __init__(self, config: Config, n_tokens: int, d_out: int) -> None:
        super().__init__()
        self.smoothing = config.smoothing
        self.register_buffer("logp", torch.zeros(n_tokens, d_out))
        self.d_out = d_out

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        w = without_padding(x[..., 0] if x.dim() == 3 else x, mask)  # [B, T]
        return without_padding(self.logp[w], mask), mask  # [B, T, C]

    def solve(self, batches: Known, held_out: Known = ()) -> None:
        """From words, mask and tags [B, T] of all sentences; a tag below 0 is none."""
        n = torch.zeros(self.logp.shape, dtype=torch.float64)  # [V, C]
        one = torch.ones((), dtype=torch.float64)
        for x, mask, y in batches:
            real = mask & (y >= 0)
            w = x[..., 0] if x.dim() == 3 else x
            n.index_put_((w[real], y[real]), one, accumulate=True)
        a, n_w = self.smoothing, n.sum(1, keepdim=True)  # [V, 1]
        once = n[n_w[:, 0] == 1]
        q = (once if len(once) else n).sum(0) + 1  # [C]; no tag is impossible
        self.logp.copy_(((n + a * q / q.sum()) / (n_w + a)).log())


def make(config: Config, sizes: Sizes) -> TagCounts:
    return TagCounts(config, sizes.d_in, sizes.d_out)


MODEL = ModelSpec(
    summary="baseline: the most frequent tag of each word, without context",
    kind="encoder",
    config=Config,
    tiny=Config(),
    make=make,
    reference="the most frequent tag",
    reads=("tokens",),
    outputs=("each",),
    owns_head=True,
    closed_form=("tags",),
)
