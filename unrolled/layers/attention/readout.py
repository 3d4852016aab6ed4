"""Readouts: one vector for a whole sequence, y [B, S, D] and mask [B, S] (True = real) -> [B, D'].

One file of `layers/readouts/` is one readout: it declares `READOUT`, which makes one for vectors of a width. Acceptor,
max and mean pooling: Poliak (2024), lecture 26.

What stands in the padding, NaN included, changes neither a value nor a gradient; a row without a real position gives
zeros.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from unrolled.core import discover
from unrolled.core.compose import without_padding


class Readout(nn.Module):
    """The base of all readouts; `d_out` is the width of the vector. Subclasses write `pool` for S >= 1, finite y."""

    ordered: ClassVar[bool] = False
    """whether the order of positions matters; the instances of a bag have none"""

    def __init__(self, d_in: int, d_out: int | None = None) -> None:
        super().__init__()
        self.d_in = d_in
        self.d_out = d_in if d_out is None else d_out

    def forward(self, y: Tensor, mask: Tensor) -> Tensor:
        if y.shape[1] == 0:
            return y.new_zeros(y.shape[0], self.d_out)  # [B, D']
        pooled = self.pool(without_padding(y, mask), mask)  # [B, D']
        return pooled.masked_fill(~mask.any(dim=1, keepdim=True), 0)

    def pool(self, y: Tensor, mask: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define pool(y, mask) -> [B, D']")

    def serial_steps(self, length: int) -> int:
        return 1


def last_position(mask: Tensor) -> Tensor:
    """The index of the last real position of each row, 0 where there is none: [B]."""
    t = torch.arange(mask.shape[1], device=mask.device)  # [S]
    return torch.where(mask, t, 0).amax(dim=1)


def first_position(mask: Tensor) -> Tensor:
    """The index of the first real position of each row, S - 1 where there is none: [B]."""
    t = torch.arange(mask.shape[1], device=mask.device)  # [S]
    return torch.where(mask, t, mask.shape[1] - 1).amin(dim=1)


def at(y: Tensor, index: Tensor) -> Tensor:
    """y [B, S, D] at one position of each row: [B, D]."""
    return y[torch.arange(y.shape[0], device=y.device), index]


def readout_named(name: str, d_in: int) -> Readout:
    """A new readout for vectors of this width; its `d_out` is what the head has to read.

    >>> readout_named("first-last", 5).d_out
    10
    """
    made: Readout = discover.readouts.declaration(name)(d_in)
    return made
