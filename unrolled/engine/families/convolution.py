"""Causal convolutions on the inputs that a state keeps by phase: alone, in temporal networks, and gated (WaveNet)."""

from __future__ import annotations

from torch import nn

from unrolled.engine.builder import Builder, CannotLower, Value
from unrolled.engine.lowering import exactly, lower, require_bare, require_quiet
from unrolled.engine.operations import Act, Do
from unrolled.layers.conv.conv import CausalConv, NormedConv
from unrolled.layers.conv.gated_conv import GatedStack
from unrolled.layers.conv.temporal import TCN, Block, Unit
from unrolled.layers.conv.wave import WaveNet
from unrolled.layers.counting.autoregression import Autoregression


def convolution(layer: CausalConv, x: Value, into: Builder, act: Act = Act.IDENTITY) -> Value:
    """b + sum_i W_i x_{t - (k-1-i) d}."""
    K, d, D = layer.kernel, layer.dilation, layer.d_in
    if K > 1:
        taps, clock = into.slot(d, (K - 1) * D), into.counter()
        x = window(into.sized(x, D), K, taps, clock, d, 0, d, into)
        into.effect(Do.ADVANCE, 1, slot=clock, a=d)
    if isinstance(layer, NormedConv):
        sources = (layer.weight, layer.length)
        return into.affine(x, layer.weight.detach(), layer.bias, *sources, act=act, make=layer.matrix)
    return into.affine(x, layer.weight.detach(), layer.bias, act=act)


def window(x: Value, kernel: int, taps: int, clock: int, dilation: int, first: int, rows: int, into: Builder) -> Value:
    """The inputs that meet at this tick, the oldest first [k D]; x joins those that are kept."""
    x = into.plain(x)
    return into.emit(Do.WINDOW, kernel * x.width, x, k=x.width, slot=taps, a=dilation, b=first, c=clock, d=rows)


def unit(layer: Unit, x: Value, into: Builder) -> Value:
    require_quiet(layer.dropout)
    require_bare(layer.conv)
    if type(layer.conv) not in (CausalConv, NormedConv):
        raise CannotLower(f"a unit with a {type(layer.conv).__name__}")
    return convolution(layer.conv, x, into, Act.RELU)


def block(layer: Block, x: Value, into: Builder) -> Value:
    assert layer.d_in is not None
    x = into.sized(x, layer.d_in)
    y = lower(layer.inner, x, into)
    carried = x if layer.carry is None else lower(layer.carry, x, into)
    return into.pointwise(y, carried, after=Act.RELU)


def temporal(layer: TCN, x: Value, into: Builder) -> Value:
    for each in layer:
        x = lower(each, x, into)
    return x


def wavenet(layer: WaveNet, x: Value, into: Builder) -> Value:
    stack: GatedStack = layer.stack
    exactly(layer.entry, CausalConv)
    exactly(stack, GatedStack)
    require_quiet(stack.dropout)
    C, L, K = stack.width, len(stack.dilations), stack.kernel
    shares = None if layer.globals is None else into.slot(L, 2 * C)
    local = None
    if layer.locals is not None:
        first = layer.entry.d_in
        whole = into.plain(into.sized(x, first + layer.d_local))
        x = into.part(whole, 0, first)
        local = into.linear(
            into.part(whole, first, layer.d_local), exactly(layer.locals, nn.Linear)
        )  # what it adds to all a_l
    x = convolution(layer.entry, x, into)
    taps, clock = into.slot(sum(stack.dilations), (K - 1) * C), into.counter()
    zs = []
    for i, d in enumerate(stack.dilations):
        met = x if K == 1 else window(x, K, taps, clock, d, sum(stack.dilations[:i]), sum(stack.dilations), into)
        added = None if shares is None else into.emit(Do.LOAD, 2 * C, slot=shares, a=i * 2 * C, d=L * 2 * C)
        if local is not None:
            own = into.part(local, i * 2 * C, 2 * C)
            added = own if added is None else into.pointwise(added, own)
        W = stack.weight.detach()[i].transpose(0, 1)  # [2 C, k, C], of all taps side by side
        a = into.affine(met, W, stack.bias.detach()[i], plus=added)
        zs.append(into.emit(Do.GATE, C, a))
        if i + 1 < L:
            x = into.affine(zs[-1], stack.residual_weight.detach()[i], stack.residual_bias.detach()[i], plus=x)
    into.effect(Do.ADVANCE, 1, slot=clock, a=stack.period)
    y = into.linear(into.join(*zs), exactly(layer.skip, nn.Linear), act=Act.RELU)
    return into.linear(y, exactly(layer.last, nn.Linear), act=Act.RELU)


RULES = {
    **dict.fromkeys((CausalConv, NormedConv, Autoregression), convolution), Unit: unit, Block: block, TCN: temporal,
    WaveNet: wavenet,
}  # fmt: skip
