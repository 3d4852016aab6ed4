"""Attention to the past and to a source, feed-forward networks, normalisations, and the blocks that they make."""

from __future__ import annotations

from torch import nn

from unrolled.engine.builder import Builder, CannotLower, Value
from unrolled.engine.lowering import by_class, exactly, lower, require_bare, require_quiet
from unrolled.engine.operations import Act, Do, Mix, NormKind
from unrolled.layers.attention import feed_forward as activations
from unrolled.layers.attention.attention import CausalSelfAttention, CrossAttention, Heads, MultiHead
from unrolled.layers.attention.blocks import CausalBlock, DecoderBlock
from unrolled.layers.attention.feed_forward import FeedForward, GatedFeedForward
from unrolled.layers.attention.grouped import GroupedHeads
from unrolled.layers.attention.norms import DeviationNorm, RMSNorm
from unrolled.layers.attention.position import Rotary
from unrolled.layers.attention.scores import Dot, ScaledDot, Score

FUNCTIONS = {
    activations.ACTIVATIONS["relu"]: Act.RELU,
    activations.ACTIVATIONS["gelu"]: Act.GELU,
    activations.ACTIVATIONS["gelu-tanh"]: Act.GELU_TANH,
}


def scale_of(score: Score) -> float:
    require_bare(score)
    if type(score) not in (Dot, ScaledDot) or score.scale is None:
        raise CannotLower(f"attention by the score {type(score).__name__}")
    return score.scale


def groups_of(heads: Heads) -> tuple[MultiHead, int]:
    """The heads, and how many of them have keys and values of their own."""
    require_bare(heads)
    if type(heads) is MultiHead:
        return heads, heads.n_heads
    if type(heads) is GroupedHeads:
        return heads, heads.n_key_heads
    raise CannotLower(f"attention with heads of the kind {type(heads).__name__}")


def linear(layer: nn.Module, x: Value, into: Builder, plus: Value | None = None) -> Value:
    return into.linear(x, exactly(layer, nn.Linear), plus=plus)


def attended(layer: CausalSelfAttention, x: Value, into: Builder, plus: Value | None = None) -> Value:
    """plus + sum_h W_c^h u^h (eqs 7.25, 7.26)."""
    heads, G = groups_of(layer.heads)
    exactly(layer, CausalSelfAttention)
    H, m, m_v, W = heads.n_heads, heads.d_key, heads.d_value, layer.window or 0
    keys = len(into.slots)
    for width in (m, m_v):
        into.slot(H, None, width, counter=keys + 2, window=layer.window)
    count = into.counter()
    x = into.sized(x, heads.d_in)
    q = linear(heads.W_q, x, into)
    if layer.rotary is None:
        kv = linear(heads.W_kv, x, into)
    else:
        exactly(layer.rotary, Rotary)
        turn = into.angles(count, m, layer.rotary.base)
        q = into.emit(Do.ROTATE, H * m, q, turn, a=m)
        kv = linear(heads.W_kv, x, into)
        into.emit(Do.ROTATE, kv.width, kv, turn, into=kv, k=G * m, a=m)
    into.effect(Do.KEEP, H, kv, k=kv.width, slot=keys, a=m, b=m_v, c=W, d=G)
    u = into.emit(Do.ATTEND, H * m_v, q, slot=keys, a=m, b=m_v, c=W, number=scale_of(layer.score))
    into.effect(Do.ADVANCE, 1, slot=count)
    return linear(heads.W_c, u, into, plus)


def looked(layer: CrossAttention, x: Value, into: Builder, plus: Value | None = None) -> Value:
    """The same for a source (eq. 7.33), whose leaves are keys, values, mask and bias."""
    heads, _ = groups_of(layer.heads)
    exactly(layer, CrossAttention)
    H, m, m_v = heads.n_heads, heads.d_key, heads.d_value
    slot = into.slot(H, None, m)
    into.slot(H, None, m_v)
    into.flags(1, 1, None)
    into.slot(1, 1, None)
    q = linear(heads.W_q, into.sized(x, heads.d_in), into)
    u = into.emit(Do.LOOK, H * m_v, q, slot=slot, a=m, b=m_v, number=scale_of(layer.score))
    return linear(heads.W_c, u, into, plus)


def fed(layer: nn.Module, x: Value, into: Builder, plus: Value | None = None) -> Value:
    """plus + the feed-forward network."""
    require_bare(layer)
    if type(layer) is FeedForward:
        if layer.activation not in FUNCTIONS:
            raise CannotLower("a feed-forward network with another activation")
        inner = into.linear(x, exactly(layer.W_1, nn.Linear), act=FUNCTIONS[layer.activation])
        return linear(layer.W_2, inner, into, plus)
    if type(layer) is GatedFeedForward:
        gate = into.pointwise(linear(layer.W_1, x, into), linear(layer.W_3, x, into), Mix.TIMES, before=Act.SILU)
        return linear(layer.W_2, gate, into, plus)
    raise CannotLower(f"a block with a {type(layer).__name__}")


def normalised(layer: nn.LayerNorm | RMSNorm | DeviationNorm, x: Value, into: Builder) -> Value:
    if isinstance(layer, nn.LayerNorm) and layer.normalized_shape != (x.width,):
        raise CannotLower("a normalisation over several axes")
    kind = by_class(layer, NORMS)
    weight, bias = into.vector(layer.weight), into.vector(layer._parameters.get("bias"))
    return into.emit(Do.NORM, x.width, x, weight=weight, bias=bias, a=kind, number=layer.eps)


def block(layer: CausalBlock, x: Value, into: Builder) -> Value:
    require_quiet(layer.dropout)
    x = into.plain(into.sized(x, layer.d_out))
    attention = layer.attention
    assert isinstance(attention, CausalSelfAttention)
    if layer.norm == "pre":
        x = attended(attention, lower(layer.norm_1, x, into), into, x)
        return fed(layer.feed_forward, lower(layer.norm_2, x, into), into, x)
    x = lower(layer.norm_1, attended(attention, x, into, x), into)
    return lower(layer.norm_2, fed(layer.feed_forward, x, into, x), into)


def decoder_block(layer: DecoderBlock, x: Value, into: Builder) -> Value:
    require_quiet(layer.dropout)
    x = into.plain(into.sized(x, layer.d_out))
    if layer.norm == "pre":
        x = attended(layer.attention, lower(layer.norm_1, x, into), into, x)
        x = looked(layer.cross, lower(layer.norm_2, x, into), into, x)
        return fed(layer.feed_forward, lower(layer.norm_3, x, into), into, x)
    x = lower(layer.norm_1, attended(layer.attention, x, into, x), into)
    x = lower(layer.norm_2, looked(layer.cross, x, into, x), into)
    return lower(layer.norm_3, fed(layer.feed_forward, x, into, x), into)


NORMS = {nn.LayerNorm: NormKind.LAYER, RMSNorm: NormKind.RMS, DeviationNorm: NormKind.DEVIATION}
RULES = {
    CausalBlock: block, DecoderBlock: decoder_block, CausalSelfAttention: attended, CrossAttention: looked,
    FeedForward: fed, GatedFeedForward: fed, **dict.fromkeys(NORMS, normalised),
}  # fmt: skip
