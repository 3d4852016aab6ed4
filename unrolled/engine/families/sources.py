"""What a source adds: the first state, a vector beside each input, a sequence along them, or all of it attended to."""

from __future__ import annotations

from torch import nn

from unrolled.engine.builder import Builder, CannotLower, Value
from unrolled.engine.families.recurrent import cell_tick, old
from unrolled.engine.lowering import exactly, lower, require_bare, require_quiet
from unrolled.engine.operations import Act, Do
from unrolled.layers.attention.attention_cell import Aligned
from unrolled.layers.attention.scores import Additive, Concatenation, Dot, General, ScaledDot, Score
from unrolled.layers.parts.conditioning import Appended, Held
from unrolled.layers.parts.decoders import AttentionDecoder, EveryStepDecoder, StartDecoder


def started(layer: StartDecoder, x: Value, into: Builder) -> Value:
    """What is known of the source is the state before the first tick."""
    return lower(layer.stack, x, into)


def beside(layer: EveryStepDecoder, x: Value, into: Builder) -> Value:
    """h = f(h', [x; z*]), y = [h; z*]."""
    D = layer.readout.d_out
    z = into.emit(Do.LOAD, D, slot=into.slot(D), d=D)
    y = lower(layer.stack, into.join(into.plain(x), z), into)
    return into.join(y, z)


def appended(layer: Appended | Held, x: Value, into: Builder) -> Value:
    """y = (x, s), with s of the place that the cursor is at."""
    L, hop = layer.d_source, layer.hop if isinstance(layer, Held) else 1
    slot, cursor = into.slot(None, L), into.counter()
    s = into.emit(Do.BESIDE, L, slot=slot, a=hop)
    into.effect(Do.ADVANCE, 1, slot=cursor)
    return into.join(into.plain(x if layer.d_in is None else into.sized(x, layer.d_in)), s)


def attending(layer: AttentionDecoder, x: Value, into: Builder) -> Value:
    """alpha = softmax_tau s(s', v^tau),  u = sum_tau alpha_tau v^tau,  s = f(s', [x; u])."""
    aligned = exactly(layer.aligned, Aligned)
    cell = aligned.cell
    require_bare(cell)
    if aligned.steps is None:
        raise CannotLower(f"attention of a {type(cell).__name__}")
    require_quiet(layer.dropout)
    D, G = aligned.d_source, len(aligned.W_ih)
    x, keys = into.sized(x, aligned.d_in), len(into.slots)
    before = old(into, keys + 4, cell.output_size, cell.state_size)  # of the leaf that the cell's tick makes
    q, v = query(aligned.score, before, into)
    for width in (q.width, D, G):
        into.slot(None, width)
    into.slot(1, None)
    met = into.emit(Do.ALIGN, D + G, q, k=q.width, slot=keys, a=D, b=G, weight=v, number=aligned.score.scale or 1.0)
    u, entering = into.part(met, 0, D), into.part(met, D, G)  # W_u u is the sum of what was made of each v
    y = cell_tick(cell, x, into, slice(aligned.d_in), entering)
    if layer.above is not None:
        y = lower(layer.above, y, into)
    if layer.W_o is None:
        return y
    return into.linear(into.join(y, u, into.plain(x)), exactly(layer.W_o, nn.Linear), act=Act.TANH)


def query(score: Score, h: Value, into: Builder) -> tuple[Value, int]:
    """What meets the keys, and the v of a score that is v . tanh(query + key), or -1."""
    require_bare(score)
    if type(score) in (Dot, ScaledDot, General):
        return h, -1
    if type(score) is Additive:
        return into.affine(h, score.W_a), into.vector(score.v_a)
    if type(score) is Concatenation:
        return into.affine(h, score.W.detach()[:, : score.m_q]), into.vector(score.v)
    raise CannotLower(f"attention by the score {type(score).__name__}")


RULES = {
    StartDecoder: started, EveryStepDecoder: beside, AttentionDecoder: attending, Appended: appended, Held: appended,
}  # fmt: skip
