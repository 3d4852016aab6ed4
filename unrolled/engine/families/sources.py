"""Recurrent decoders that one vector of a source starts; it may stay beside every input and output."""

from __future__ import annotations

from unrolled.engine.builder import Builder, Value
from unrolled.engine.lowering import lower
from unrolled.engine.operations import Do
from unrolled.layers.parts.decoders import EveryStepDecoder, StartDecoder


def started(layer: StartDecoder, x: Value, into: Builder) -> Value:
    """What is known of the source is the state before the first tick."""
    return lower(layer.stack, x, into)


def beside(layer: EveryStepDecoder, x: Value, into: Builder) -> Value:
    """h = f(h', [x; z*]), y = [h; z*]."""
    D = layer.readout.d_out
    z = into.emit(Do.LOAD, D, slot=into.slot(D), d=D)
    y = lower(layer.stack, into.join(into.plain(x), z), into)
    return into.join(y, z)


RULES = {StartDecoder: started, EveryStepDecoder: beside}
