"""Recurrent cells, and the layers that run them."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

from torch import Tensor, nn

from unrolled.engine.builder import Builder, CannotLower, Value
from unrolled.engine.lowering import by_class, lower, require_quiet
from unrolled.engine.operations import Act, Do
from unrolled.layers.recurrent.cells import (
    ACTIVATIONS,
    GRU,
    LSTM,
    Activation,
    BookGRU,
    Elman,
    LinearUnit,
    Memoryless,
)
from unrolled.layers.recurrent.recurrent import Recurrent, Stacked

NAMED = {ACTIVATIONS[name]: Act[name.upper()] for name in ("tanh", "relu", "sigmoid", "identity")}


def function(activation: Activation) -> Act:
    if activation not in NAMED:
        raise CannotLower("an activation that has no native form")
    return NAMED[activation]


def recurrent(layer: Recurrent, x: Value, into: Builder) -> Value:
    """Every scan gives the same numbers, so a tick is that of the cell."""
    return lower(layer.cell, x, into)


def stacked(layer: Stacked, x: Value, into: Builder) -> Value:
    require_quiet(layer.dropout)
    for each in layer.layers:
        x = lower(each, x, into)
    return x


def old(into: Builder, slot: int, N: int, of: int | None = None) -> Value:
    """The first N numbers of a leaf."""
    return into.emit(Do.LOAD, N, slot=slot, d=of or N)


def memoryless(cell: Memoryless, a: Value, into: Builder) -> Value:
    y = into.pointwise(a, after=function(cell.activation))
    into.effect(Do.STORE, cell.state_size, y, slot=into.slot(cell.state_size), d=cell.state_size)
    return y


def elman(cell: Elman, a: Value, into: Builder) -> Value:
    """h = sigma(W_hh h' + a)."""
    N = cell.state_size
    slot = into.slot(N)
    h = into.affine(old(into, slot, N), cell.weight_hh, act=function(cell.activation), plus=a)
    into.effect(Do.STORE, N, h, slot=slot, d=N)
    return h


def lstm(cell: LSTM, a: Value, into: Builder) -> Value:
    P, N = cell.output_size, cell.state_size  # of h, and of (h, c)
    H = N - P
    slot = into.slot(N)
    a = into.affine(old(into, slot, P, N), cell.weight_hh, cell.bias_hh, plus=a)  # i, f, g, o
    if cell.weight_hr is None:
        return into.emit(Do.LSTM_TICK, H, a, slot=slot, a=P, b=0, d=N)
    h = into.affine(into.emit(Do.LSTM_TICK, H, a, slot=slot, a=P, b=-1, d=N), cell.weight_hr)
    into.effect(Do.STORE, P, h, slot=slot, d=N)
    return h


def gru(cell: GRU, a: Value, into: Builder) -> Value:
    N = cell.state_size
    slot = into.slot(N)
    q = into.affine(old(into, slot, N), cell.weight_hh, cell.bias_hh)
    return into.emit(Do.GRU_TICK, N, a, q, slot=slot)


def book_gru(cell: BookGRU, a: Value, into: Builder) -> Value:
    N = cell.state_size
    slot, W = into.slot(N), cell.weight_hh.detach()
    q = into.affine(old(into, slot, N), W[: 2 * N])
    s = into.emit(Do.RESET, N, a, q, slot=slot)
    return into.emit(Do.UPDATE, N, a, into.affine(s, W[2 * N :]), slot=slot)


class Split(NamedTuple):
    """A cell whose input comes in as a sum a = W_ih x + bias."""

    bias: Callable[[Any], Tensor | None]
    tick: Callable[[Any, Value, Builder], Value]  # cell, a -> the output; the state is the next leaf


own_bias, input_bias = attrgetter("bias"), attrgetter("bias_ih")
SPLIT: dict[type[nn.Module], Split] = {
    Memoryless: Split(own_bias, memoryless), Elman: Split(own_bias, elman), LinearUnit: Split(own_bias, elman),
    LSTM: Split(input_bias, lstm), GRU: Split(input_bias, gru), BookGRU: Split(own_bias, book_gru),
}  # fmt: skip


def cell_tick(cell: Any, x: Value, into: Builder, part: slice = slice(None), plus: Value | None = None) -> Value:
    """A tick that reads x, or of whose input x is only a part and `plus` what the rest adds to the sum."""
    split = by_class(cell, SPLIT)
    W = cell.weight_ih.detach()[:, part]
    return split.tick(cell, into.affine(x, W, split.bias(cell), plus=plus), into)


RULES = {Recurrent: recurrent, Stacked: stacked, **dict.fromkeys(SPLIT, cell_tick)}
