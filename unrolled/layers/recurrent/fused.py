"""The fast scan: for every cell the quickest way that is known, by the exact class of the cell.

Elman, the linear unit, both GRUs and LSTM run through `unrolled.kernels`, without a graph node per tick; a memoryless
cell does all ticks at once; the others run through `loop`. A cell with hooks or with parameters that are not its own
(pruned, parametrised) is called tick by tick. Second derivatives are those of the equations, as slow as `loop`.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from unrolled.core.bare import bare
from unrolled.kernels.book_gru import book_gru
from unrolled.kernels.elman import elman
from unrolled.kernels.gru import gru
from unrolled.kernels.lstm import lstm
from unrolled.layers.recurrent.cells import (
    GRU,
    LSTM,
    Activation,
    BookGRU,
    Cell,
    Elman,
    LinearUnit,
    Memoryless,
    identity,
)
from unrolled.layers.recurrent.scan import Scan, check_sizes, loop

ACTIVATIONS: dict[Activation, str] = {  # those that the kernel has
    torch.tanh: "tanh", torch.relu: "relu", torch.sigmoid: "sigmoid", identity: "identity",
}  # fmt: skip


def fused_elman(cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
    assert isinstance(cell, Elman)
    if cell.activation not in ACTIVATIONS:
        return loop(cell, x, h0)
    return elman(x, h0, cell.weight_ih, cell.weight_hh, cell.bias, ACTIVATIONS[cell.activation])


def fused_gru(cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
    assert isinstance(cell, GRU)
    return gru(x, h0, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)


def fused_book_gru(cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
    assert isinstance(cell, BookGRU)
    return book_gru(x, h0, cell.weight_ih, cell.weight_hh, cell.bias)


def fused_lstm(cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
    assert isinstance(cell, LSTM)
    if cell.weight_hr is None:
        return lstm(x, h0, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)
    if cell.state_size == 2 * cell.output_size:  # torch tells a projection by its width, and would take this for none
        return loop(cell, x, h0)
    weights: list[Tensor] = [w for w in (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh) if w is not None]
    h, c = h0[:, : cell.output_size].contiguous()[None], h0[:, cell.output_size :].contiguous()[None]  # [1, B, .]
    options = (cell.bias_ih is not None, 1, 0.0, torch.is_grad_enabled(), False, True)
    with warnings.catch_warnings():  # oneDNN has no projection; torch then takes its own way, and says so
        warnings.filterwarnings("ignore", message="LSTM with projections")
        y, h, c = torch._VF.lstm(x, (h, c), [*weights, cell.weight_hr], *options)
    return y, torch.cat([h[0], c[0]], dim=-1)  # [B, T, D'], [B, N]


def at_once(cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
    """A cell that ignores its state does all ticks in one call."""
    states = cell(x, h0)  # [B, T, N]
    return cell.output(states), states[:, -1].clone()


KERNELS: dict[type[Cell], Scan] = {  # by exact class: a subclass may have changed the equation
    Elman: fused_elman, LinearUnit: fused_elman, GRU: fused_gru, BookGRU: fused_book_gru, LSTM: fused_lstm,
    Memoryless: at_once,
}  # fmt: skip


def fused(cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
    """The fastest way that is known for this cell; the state given is never modified."""
    check_sizes(cell, x, h0)
    if torch._C._is_tracing() or torch._C._are_functorch_transforms_active():  # these know operations of torch alone
        return loop(cell, x, h0)
    one = x.shape[1] == 1 and not torch.is_grad_enabled()  # for a single tick a kernel costs more than it saves
    if one or not bare(cell):
        return loop(cell, x, h0)
    return KERNELS.get(type(cell), loop)(cell, x, h0)
