"""Positions along a stream, by the counter of each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from unrolled.engine.builder import Builder, CannotLower, Value
from unrolled.engine.lowering import require_bare
from unrolled.engine.operations import Act, Do
from unrolled.layers.attention.position import Joint, Learned, OneHot, Placed, Position, SinusoidAdded, SinusoidAppended


def placed(layer: Placed, x: Value, into: Builder) -> Value:
    position = layer.position
    if type(position) not in KINDS:
        raise CannotLower(f"positions of the kind {type(position).__name__}")
    require_bare(position)
    count = into.counter()
    y = KINDS[type(position)](position, into.sized(x, position.d_in), count, into)
    into.effect(Do.ADVANCE, 1, slot=count)
    return y


def at_row(x: Value, table: Tensor, count: int, into: Builder) -> Value:
    """x + row t of a table."""
    return into.emit(Do.PLACE, x.width, x, k=len(table), weight=into.vector(table), slot=count)


def learned(position: Learned, x: Value, count: int, into: Builder) -> Value:
    return at_row(x, position.table, count, into)


def joint(position: Joint, x: Value, count: int, into: Builder) -> Value:
    """W_1 S(W_2 x + W_3 e_t + b)."""
    inner = at_row(into.affine(x, position.W_2, position.b), position.W_3, count, into)
    return into.affine(into.pointwise(inner, after=Act.RELU), position.W_1)


def one_hot(position: OneHot, x: Value, count: int, into: Builder) -> Value:
    assert position.max_length is not None
    return into.join(x, into.emit(Do.UNIT, position.max_length, slot=count))


def added(position: SinusoidAdded, x: Value, count: int, into: Builder) -> Value:
    width = position.d_in + position.d_in % 2
    return into.emit(Do.WAVES, x.width, x, k=width, slot=count, a=position.first, number=position.base)


def appended(position: SinusoidAppended, x: Value, count: int, into: Builder) -> Value:
    width = position.d_out - position.d_in
    return into.join(x, into.emit(Do.WAVES, width, k=width, slot=count, a=position.first, number=position.base))


KINDS: dict[type[Position], Callable[[Any, Value, int, Builder], Value]] = {
    Learned: learned, Joint: joint, OneHot: one_hot, SinusoidAdded: added, SinusoidAppended: appended,
}  # fmt: skip
RULES = {Placed: placed}
