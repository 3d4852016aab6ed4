"""Neighbours, a baseline for grey images in raster order: each pixel from the one to its left and the one above.

    p(c | a, b) = (n(a, b, c) + k p(c | a)) / (n(a, b) + k),     a left, b above
    p(c | a) = (n(a, c) + k p(c)) / (n(a) + k),                  p(c) = (n(c) + 1) / (n + L)

n are counts of training data, k = 1 (MacKay & Peto 1995, with one number for all contexts). What is outside of the
image is a neighbour of its own; with more than 32 levels, neighbours have only 32.
"""

from __future__ import annotations

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from unrolled.core import config
from unrolled.core.batch import TARGET
from unrolled.core.causal import Causal
from unrolled.core.errors import DataError
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.state import State
from unrolled.core.tokens import SPECIALS
from unrolled.data.examples import Examples

MOST, K = 32, 1.0


class Config(config.Config):
    width: int = Field(28, ge=1, le=100_000)
    """Pixels in a row of the image."""


class Neighbours(Causal):
    """The state is the last `width` ids [B, width], and how many were read [B]."""

    log_p: Tensor  # [M + 1, M + 1, V] by left and above; M is the outside

    def __init__(self, width: int, d_out: int) -> None:
        super().__init__()
        self.width, self.d_out, self.receptive_field, self.receptive_field_tight = width, d_out, None, None
        self.levels = d_out - len(SPECIALS)
        self.M = min(MOST, max(self.levels, 1))
        self.register_buffer("log_p", torch.zeros(self.M + 1, self.M + 1, d_out))

    def context(self, ids: Tensor) -> Tensor:
        """0 .. M - 1 of levels, M of what is none."""
        level = ids - len(SPECIALS)
        found = (level * self.M).div(max(self.levels, 1), rounding_mode="floor").clamp(0, self.M - 1)
        return found.masked_fill(level < 0, self.M)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        B, T = x.shape
        if state is None:
            state = x.new_zeros(B, self.width), x.new_zeros(B)
        before, read = state
        line = torch.cat([before, x], dim=1)  # [B, width + T]; at the last place of x is the left neighbour
        at = read[:, None] + torch.arange(T, device=x.device)  # [B, T]: pixel `at` is predicted behind x[at]
        left = self.context(line[:, self.width :]).masked_fill(at % self.width == 0, self.M)
        above = self.context(line[:, 1 : T + 1]).masked_fill(at < self.width, self.M)
        return self.log_p[left, above], (line[:, -self.width :].clone(), read + T)

    def solve(self, data: Examples, ahead: int = 1) -> None:
        """Counts over all images."""
        M, V = self.M, self.d_out
        n = np.zeros((M + 1) * (M + 1) * V)
        for ids in data.fields[TARGET]:
            image = torch.from_numpy(ids.astype(np.int64))
            x = torch.cat([image.new_zeros(1), image[:-1]])[None]  # nothing, then the pixels before each
            at = torch.arange(len(image))
            left = self.context(x[0]).masked_fill(at % self.width == 0, M)
            line = torch.cat([image.new_zeros(self.width), image])[: len(image)]
            above = self.context(line).masked_fill(at < self.width, M)
            n += np.bincount(((left * (M + 1) + above) * V + image).numpy(), minlength=len(n))
        if n.sum() == 0:
            raise DataError("there is nothing to count: the training data has no pixels")
        counts = n.reshape(M + 1, M + 1, V)
        real = np.arange(V) >= len(SPECIALS)
        p = (counts.sum((0, 1)) + real) / (counts.sum() + real.sum())  # [V]
        of_left = counts.sum(1)  # [M + 1, V]
        p = (of_left + K * p) / (of_left.sum(-1, keepdims=True) + K)
        p = (counts + K * p[:, None]) / (counts.sum(-1, keepdims=True) + K)
        self.log_p.copy_(torch.from_numpy(np.log(np.maximum(p, 1e-30))).clamp(min=-1e4))


def make(config: Config, sizes: Sizes) -> Neighbours:
    return Neighbours(config.width, sizes.d_out)


MODEL = ModelSpec(
    summary="baseline for grey images: each pixel from the one to its left and the one above; fitted in closed form",
    kind="causal",
    config=Config,
    tiny=Config(width=3),
    make=make,
    reference="MacKay & Peto 1995",
    reads=("tokens",),
    outputs=("next",),
    owns_head=True,
    closed_form=("pixels",),
)
