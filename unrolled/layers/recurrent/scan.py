"""Scans: ways to run a cell along time. All of them have one signature and give the same numbers.

`loop` is the reference and takes any cell, `fused.fused` has fast kernels, `deer.deer` is parallel over time.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from unrolled.core.errors import UsageError
from unrolled.layers.recurrent.cells import Cell

Scan = Callable[[Cell, Tensor, Tensor], tuple[Tensor, Tensor]]
"""(cell, x [B, T, D], h_0 [B, N]) -> outputs [B, T, D'], the state after the last tick [B, N]; T >= 1."""


def check_sizes(cell: Cell, x: Tensor, h0: Tensor, width: int | None = None) -> None:
    """What every scan asks before any work is done: x [B, T, D] and h_0 [B, N] of the cell's own widths, one batch.

    `width` is that of x where it is only a part of what the cell reads.
    """
    D, N = cell.input_size if width is None else width, cell.state_size
    shape = x.shape
    if len(shape) != 3 or shape[2] != D:
        raise UsageError(f"{type(cell).__name__} expects an input of width {D}, found x of shape {list(shape)}")
    if h0.shape != (shape[0], N):
        raise UsageError(
            f"expected a state of {type(cell).__name__} of shape [{shape[0]}, {N}], found {list(h0.shape)}"
        )


def loop(cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
    """h_t = cell(x_t, h_{t-1}), tick by tick.

    >>> from unrolled.layers.recurrent.cells import Elman
    >>> y, h = loop(Elman(3, 4), torch.zeros(2, 5, 3), torch.zeros(2, 4))
    >>> tuple(y.shape), bool((y[:, -1] == h).all())
    ((2, 5, 4), True)
    """
    check_sizes(cell, x, h0)
    h = h0
    outputs = []
    for x_t in x.unbind(1):
        h = cell(x_t, h)
        outputs.append(cell.output(h))
    return torch.stack(outputs, dim=1), h  # [B, T, D'], [B, N]


def trajectory(cell: Cell, x: Tensor, h0: Tensor) -> Tensor:
    """The states h_1 .. h_T [B, T, N], for looking inside."""
    check_sizes(cell, x, h0)
    h = h0
    states = []
    for x_t in x.unbind(1):
        h = cell(x_t, h)
        states.append(h)
    return torch.stack(states, dim=1)  # [B, T, N]
