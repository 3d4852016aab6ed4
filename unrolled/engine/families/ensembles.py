"""Several models of choices that predict together: each one's operations, and the mixture behind them."""

from __future__ import annotations

from collections.abc import Callable

import torch

from unrolled.emissions.categorical import Categorical
from unrolled.engine.builder import Builder, CannotLower, Value
from unrolled.engine.lowering import exactly, lower
from unrolled.engine.operations import Do
from unrolled.layers.parts.ensemble import ByEmission, CausalTogether
from unrolled.layers.parts.gate import Gate

MOST_MEMBERS = 32  # native/mixture.h


def together(layer: CausalTogether, x: Value, into: Builder) -> Value:
    """y = tau log sum_k w_k p_k, with constant weights or those of a gate."""
    gate = exactly(layer.mix, Gate) if isinstance(layer.mix, Gate) else None
    emission, n = _emission(layer.mix if gate is None else gate.mix), len(layer.members)
    if n > MOST_MEMBERS:
        raise CannotLower(f"an ensemble of more than {MOST_MEMBERS} members")
    ys = [lower(member, x, into) for member in layer.members]
    if len({y.width for y in ys}) > 1:
        raise CannotLower("members with different numbers of outputs")
    fixed = into.vector(torch.tensor(layer.weights, dtype=into.dtype).log())
    b, A, mean, deviation = (
        (-1, -1, -1, -1) if gate is None else map(into.vector, (gate.b, gate.A, gate.mean, gate.deviation))
    )
    return into.emit(
        Do.MIXTURE, ys[0].width, into.join(*ys), k=n, weight=fixed, bias=b, a=A, b=mean, c=deviation,
        number=emission.temperature,
    )  # fmt: skip


def _emission(mix: Callable[..., object]) -> Categorical:
    found = mix.emission() if isinstance(mix, ByEmission) else None
    if type(found) is not Categorical:
        raise CannotLower("an ensemble whose outputs are not probabilities of choices")
    return found


RULES = {CausalTogether: together}
