"""Layers made of layers."""

from __future__ import annotations

from torch import nn

from unrolled.core.compose import Each, Residual, Serial
from unrolled.engine.builder import Builder, CannotLower, Value
from unrolled.engine.lowering import by_class, lower
from unrolled.engine.operations import Act
from unrolled.layers.parts.assembled import Decoder
from unrolled.layers.parts.dropout import WordDropout
from unrolled.layers.parts.embedding import Borrowed


def serial(layer: Serial, x: Value, into: Builder) -> Value:
    for each in layer:
        x = lower(each, x, into)
    return x


def each(layer: Each, x: Value, into: Builder) -> Value:
    return lower(layer.module, x, into)


def residual(layer: Residual, x: Value, into: Builder) -> Value:
    x = into.plain(x)
    return into.pointwise(lower(layer.layer, x, into), x)


def decoder(layer: Decoder, x: Value, into: Builder) -> Value:
    """y = head(body(embedding(x)))."""
    parts = [layer.embedding, *layer.before, layer.body, *layer.behind, layer.head]
    for part in parts:
        if part is not None:
            x = lower(part.module if isinstance(part, Borrowed) else part, x, into)
    return x


def nothing(layer: nn.Module, x: Value, _into: Builder) -> Value:
    """What only training has."""
    if layer.training:
        raise CannotLower(f"{type(layer).__name__} in training")
    return x


def same(_layer: nn.Identity, x: Value, _into: Builder) -> Value:
    return x


def activation(layer: nn.Module, x: Value, into: Builder) -> Value:
    return into.pointwise(x, after=by_class(layer, ACTIVATIONS))


ACTIVATIONS = {nn.Tanh: Act.TANH, nn.ReLU: Act.RELU, nn.Sigmoid: Act.SIGMOID, nn.SiLU: Act.SILU}
RULES = {
    Serial: serial, Each: each, Residual: residual, Decoder: decoder, nn.Identity: same, nn.Dropout: nothing,
    WordDropout: nothing, **dict.fromkeys(ACTIVATIONS, activation),
}  # fmt: skip
