"""The recurrent family: what its models have in common, so that a model file says only what is its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Self

from pydantic import Field

from unrolled.core.config import Config
from unrolled.layers.recurrent import deer, fused, scan
from unrolled.layers.recurrent.cells import Cell
from unrolled.layers.recurrent.recurrent import Bidirectional, BidirectionalStack, Recurrent, Stacked

SCANS: dict[str, scan.Scan] = {"fused": fused.fused, "loop": scan.loop, "deer": deer.deer}


class RecurrentConfig(Config):
    """The settings of any stack of recurrent layers."""

    d_state: int = Field(256, ge=1)
    """Units per layer (m of the equations)."""
    n_layers: int = Field(1, ge=1)
    """Layers, eq. (7.15)."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout between layers."""
    initial: Literal["zero", "learned"] = "zero"
    """Initial state: zero or learned."""
    scan: Literal["fused", "loop", "deer"] = "fused"
    """How the recurrence is computed: fast kernels, a plain loop, or parallel over time by Newton iteration."""

    def resized(self, width: int) -> Self:
        """The same with so many units per layer: what a comparison at equal size changes."""
        return self.updated({"d_state": width})


class BidirectionalConfig(RecurrentConfig):
    """The settings of any stack of recurrent layers that read both ways."""

    d_state: int = Field(128, ge=1)
    """Units per layer and direction (m of the equations)."""


def recurrent_layers(config: RecurrentConfig, d_in: int, cell: Callable[[int, int], Cell]) -> list[Recurrent]:
    """`n_layers` recurrent layers of `cell(d_in, d_state)`, each fed by the output of the one below."""
    layers: list[Recurrent] = []
    for _ in range(config.n_layers):
        layers.append(Recurrent(cell(d_in, config.d_state), SCANS[config.scan], config.initial))
        d_in = layers[-1].d_out
    return layers


def stack(config: RecurrentConfig, d_in: int, cell: Callable[[int, int], Cell]) -> Stacked:
    """These layers as one, with dropout between them."""
    return Stacked(recurrent_layers(config, d_in, cell), dropout=config.dropout)


def bidirectional_layers(
    config: BidirectionalConfig, d_in: int, cell: Callable[[int, int], Cell]
) -> list[Bidirectional]:
    """`n_layers` layers of two cells each, one per direction; a layer sees both directions of the one below."""

    def direction(d_in: int) -> Recurrent:
        return Recurrent(cell(d_in, config.d_state), SCANS[config.scan], config.initial)

    layers: list[Bidirectional] = []
    for _ in range(config.n_layers):
        layers.append(Bidirectional(direction(d_in), direction(d_in)))
        d_in = layers[-1].d_out
    return layers


def bidirectional_stack(config: BidirectionalConfig, d_in: int, cell: Callable[[int, int], Cell]) -> BidirectionalStack:
    """These layers as one, with dropout between them."""
    return BidirectionalStack(bidirectional_layers(config, d_in, cell), dropout=config.dropout)
