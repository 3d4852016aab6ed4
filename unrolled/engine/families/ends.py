"""What stands before and behind a body: tables and affine maps."""

from __future__ import annotations

from torch import Tensor, nn

from unrolled.engine.builder import GIVEN, Builder, CannotLower, Value
from unrolled.engine.lowering import lower
from unrolled.layers.parts.embedding import OneHot, Table, TiedHead


def table(layer: nn.Embedding, x: Value, into: Builder) -> Value:
    if layer.max_norm is not None:
        raise CannotLower("a table whose vectors are limited")
    into.tokens(x)
    scale = layer.scale if isinstance(layer, Table) else 1.0
    return Value(layer.embedding_dim, table=layer.weight, scale=scale)


def one_hot(layer: OneHot, x: Value, into: Builder) -> Value:
    into.tokens(x)
    return Value(len(layer.unit), table=layer.unit, is_unit=True)


def affine(layer: nn.Linear, x: Value, into: Builder) -> Value:
    return into.linear(x, layer)


def tied(layer: TiedHead, x: Value, into: Builder) -> Value:
    source: nn.Module = layer.table.module
    E = source.weight
    if type(E) is not nn.Parameter:
        raise CannotLower("a table whose vectors are computed")
    lower(source, GIVEN, into)  # it must be what its class says
    rows: Tensor = E[: len(layer.bias)].detach()
    return into.affine(x, rows, layer.bias)


RULES = {nn.Embedding: table, Table: table, OneHot: one_hot, nn.Linear: affine, TiedHead: tied}
