"""Cells whose own last output is part of their next input (Jordan 1986; book eq. 7.3)."""

from __future__ import annotations

import torch

from unrolled.engine.builder import Builder, CannotLower, Value
from unrolled.engine.families.recurrent import NAMED, function, old
from unrolled.engine.lowering import require_bare
from unrolled.engine.operations import Do
from unrolled.layers.recurrent.cells import Elman, Feedback, Jordan, Memoryless, OutputFeedback, softmax


def meaning(cell: Feedback, z: Value, into: Builder) -> Value:
    """y' = sigma_y(z')."""
    if cell.output_activation is softmax:
        return into.emit(Do.SOFTMAX, z.width, z)
    return into.pointwise(z, after=function(cell.output_activation))


def jordan(cell: Jordan, x: Value, into: Builder) -> Value:
    """h = sigma_h(W_hx x + W_hy y' + b_h); the state is z alone."""
    inner, q = cell.inner, cell.output_size
    if type(inner) is not Memoryless:
        raise CannotLower("a Jordan cell with another inner cell")
    require_bare(inner)
    slot, D, W = into.slot(q), cell.input_size, inner.weight_ih.detach()
    a = into.affine(x, W[:, :D], inner.bias)
    h = into.affine(meaning(cell, old(into, slot, q), into), W[:, D:], act=function(inner.activation), plus=a)
    z = into.affine(h, cell.weight_yh, cell.bias_y)
    into.effect(Do.STORE, q, z, slot=slot, d=q)
    return z


def output_feedback(cell: OutputFeedback, x: Value, into: Builder) -> Value:
    """h = S_h(W_hh h' + W_hx (x + T(y')) + b_h); the state is (h, z)."""
    inner, M, q = cell.inner, cell.memory, cell.output_size
    if type(inner) is not Elman or inner.activation not in NAMED:
        raise CannotLower("a feedback cell with another inner cell")
    require_bare(inner)
    slot = into.slot(M + q)
    z = into.emit(Do.LOAD, q, slot=slot, a=M, d=M + q)
    y, W = meaning(cell, z, into), inner.weight_ih
    a = into.affine(x, W, inner.bias)
    if cell.weight_t is None:
        a = into.affine(y, W, plus=a)
    else:
        T = cell.weight_t
        a = into.affine(y, torch.empty(len(W), T.shape[1], dtype=W.dtype), None, W, T, plus=a, make=lambda: W @ T)
    h = into.affine(old(into, slot, M, M + q), inner.weight_hh, act=function(inner.activation), plus=a)
    z = into.affine(h, cell.weight_yh, cell.bias_y)
    into.effect(Do.STORE, M, h, slot=slot, d=M + q)
    into.effect(Do.STORE, q, z, slot=slot, a=M, d=M + q)
    return z


RULES = {Jordan: jordan, OutputFeedback: output_feedback}
