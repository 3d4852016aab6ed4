"""One tick without gradients: generation at batch 1, where the cost is calls and not arithmetic.

For one row numpy works on the tensors' own memory: nothing is copied, so nothing can go stale; a call costs a quarter
of a torch call, and the product with a single row is faster. Several rows, other devices and other number types go
through the cell's own equation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unrolled.layers.cells import LSTM, Cell

ARRAYS = (torch.float32, torch.float64)


def tick(cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
    """Any cell by its own equation: x [B, 1, D] -> y [B, 1, D'] and the state [B, N]."""
    h = cell(x.squeeze(1), h0)
    return cell.output(h).unsqueeze(1), h


def tick_lstm(cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
    """`cells.LSTM` for one row, with sigmoid(a) = (1 + tanh(a / 2)) / 2, which cannot overflow."""
    weights: Any = cell._parameters
    W = weights["weight_ih"]
    plain = x.dtype in ARRAYS and x.dtype == W.dtype == h0.dtype and not x.requires_grad and not h0.requires_grad
    if x.shape[0] != 1 or not plain or not W.is_cpu:
        return tick(cell, x, h0)
    P = cell.output_size
    H = cell.state_size - P
    old = h0.numpy()[0]  # (h', c') [N]
    new = np.empty_like(old)  # (h, c) [N]
    h, c = new[:P], new[P:]
    a = np.dot(W.detach().numpy(), x.numpy()[0, 0])  # [4 H]
    a += np.dot(weights["weight_hh"].detach().numpy(), old[:P])
    if weights.get("bias_ih") is not None:
        a += weights["bias_ih"].detach().numpy()
        a += weights["bias_hh"].detach().numpy()
    g = np.tanh(a[2 * H : 3 * H])
    a *= 0.5
    np.tanh(a, out=a)
    a *= 0.5
    a += 0.5  # i, f, (g has its own), o
    g *= a[:H]
    np.multiply(a[H : 2 * H], old[P:], out=c)
    c += g
    if weights.get("weight_hr") is None:
        np.tanh(c, out=h)
        h *= a[3 * H :]
    else:
        np.dot(weights["weight_hr"].detach().numpy(), np.tanh(c) * a[3 * H :], out=h)
    state = torch.from_numpy(new)
    return state[:P].view(1, 1, P), state.view(1, P + H)


TICKS: dict[type[Cell], Callable[[Cell, Tensor, Tensor], tuple[Tensor, Tensor]]] = {LSTM: tick_lstm}
