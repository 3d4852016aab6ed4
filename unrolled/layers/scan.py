"""Scans: ways to run a cell along time. All of them have one signature and give the same numbers.

`loop` is the reference and takes any cell, `fused.fused` has fast kernels, `deer.deer` is parallel over time.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from unrolled.layers.cells import Cell

Scan = Callable[[Cell, Tensor, Tensor], tuple[Tensor, Tensor]]
"""(cell, x [B, T, D], h_0 [B, N]) -> outputs [B, T, D'], the state after the last tick [B, N]; T >= 1."""


def loop(cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
    """h_t = cell(x_t, h_{t-1}), tick by tick.

    >>> from unrolled.layers.cells import Elman
    >>> y, h = loop(Elman(3, 4), torch.zeros(2, 5, 3), torch.zeros(2, 4))
    >>> tuple(y.shape), bool((y[:, -1] == h).all())
    ((2, 5, 4), True)
    """
    h = h0
    outputs = []
    for x_t in x.unbind(1):
        h = cell(x_t, h)
        outputs.append(cell.output(h))
    return torch.stack(outputs, dim=1), h  # [B, T, D'], [B, N]


def trajectory(cell: Cell, x: Tensor, h0: Tensor) -> Tensor:
    """The states h_1 .. h_T [B, T, N], for looking inside."""
    h = h0
    states = []
    for x_t in x.unbind(1):
        h = cell(x_t, h)
        states.append(h)
    return torch.stack(states, dim=1)  # [B, T, N]
