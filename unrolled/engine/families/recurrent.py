"""Recurrent cells, and the layers that run them."""

from __future__ import annotations

from unrolled.engine.builder import Builder, CannotLower, Value
from unrolled.engine.lowering import lower
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
    if layer.training and layer.dropout.p:
        raise CannotLower("dropout in training")
    for each in layer.layers:
        x = lower(each, x, into)
    return x


def old(into: Builder, slot: int, N: int, of: int | None = None) -> Value:
    """The first N numbers of a leaf."""
    return into.emit(Do.LOAD, N, slot=slot, d=of or N)


def memoryless(cell: Memoryless, x: Value, into: Builder) -> Value:
    y = into.affine(x, cell.weight_ih, cell.bias, act=function(cell.activation))
    into.effect(Do.STORE, cell.state_size, y, slot=into.slot(cell.state_size), d=cell.state_size)
    return y


def elman(cell: Elman, x: Value, into: Builder) -> Value:
    """h = sigma(W_hh h' + W_ih x + b)."""
    N = cell.state_size
    slot = into.slot(N)
    a = into.affine(x, cell.weight_ih, cell.bias)
    h = into.affine(old(into, slot, N), cell.weight_hh, act=function(cell.activation), plus=a)
    into.effect(Do.STORE, N, h, slot=slot, d=N)
    return h


def lstm(cell: LSTM, x: Value, into: Builder) -> Value:
    P, N = cell.output_size, cell.state_size  # of h, and of (h, c)
    H = N - P
    slot = into.slot(N)
    a = into.affine(x, cell.weight_ih, cell.bias_ih)
    a = into.affine(old(into, slot, P, N), cell.weight_hh, cell.bias_hh, plus=a)  # i, f, g, o
    if cell.weight_hr is None:
        return into.emit(Do.LSTM_TICK, H, a, slot=slot, a=P, b=0, d=N)
    h = into.affine(into.emit(Do.LSTM_TICK, H, a, slot=slot, a=P, b=-1, d=N), cell.weight_hr)
    into.effect(Do.STORE, P, h, slot=slot, d=N)
    return h


def gru(cell: GRU, x: Value, into: Builder) -> Value:
    N = cell.state_size
    slot = into.slot(N)
    a = into.affine(x, cell.weight_ih, cell.bias_ih)
    q = into.affine(old(into, slot, N), cell.weight_hh, cell.bias_hh)
    return into.emit(Do.GRU_TICK, N, a, q, slot=slot)


def book_gru(cell: BookGRU, x: Value, into: Builder) -> Value:
    N = cell.state_size
    slot = into.slot(N)
    a = into.affine(x, cell.weight_ih, cell.bias)  # sums of r, u, n
    W = cell.weight_hh.detach()
    q = into.affine(old(into, slot, N), W[: 2 * N])
    s = into.emit(Do.RESET, N, a, q, slot=slot)
    return into.emit(Do.UPDATE, N, a, into.affine(s, W[2 * N :]), slot=slot)


RULES = {
    Recurrent: recurrent, Stacked: stacked, Memoryless: memoryless, Elman: elman, LinearUnit: elman, LSTM: lstm,
    GRU: gru, BookGRU: book_gru,
}  # fmt: skip
