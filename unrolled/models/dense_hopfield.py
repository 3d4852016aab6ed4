"""Dense Hopfield network: an interaction that grows faster than the square, for far more patterns.

    E = -sum_n F(x_n^T xi),   F(z) = z^a or exp(z),        xi_l <- sgn(E(bit l = -1) - E(bit l = +1))  (7.4), (7.5)

A polynomial of degree a keeps about d^(a-1) random patterns of d bits, the exponential about 2^(d/2)
(layers/memory/dense.py).

Krotov & Hopfield (2016); Demircigil et al. (2017).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from unrolled.core import config
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.memory.dense import Dense
from unrolled.layers.memory.memory import Order, Updates


class Config(config.Config):
    interaction: Literal["exponential", "polynomial"] = "exponential"
    """The interaction F."""
    degree: int = Field(3, ge=2, le=50)
    """For a polynomial: its degree."""
    updates: Updates = "asynchronous"
    """Whether bits are updated one after the other, or all at once from the state before (synchronous)."""
    order: Order = "random"
    """Order of asynchronous updates."""
    seed: int = Field(0, ge=0)
    """Seed of the random order."""


def make(config: Config, sizes: Sizes) -> Dense:
    degree = None if config.interaction == "exponential" else config.degree
    return Dense(sizes.d_in, degree, config.updates, config.order, config.seed)


MODEL = ModelSpec(
    summary="dense Hopfield network: polynomial or exponential interaction; stores d^(a-1) or 2^(d/2) patterns",
    kind="memory",
    config=Config,
    tiny=Config(order="fixed"),
    make=make,
    reference="Krotov & Hopfield 2016; Demircigil et al. 2017",
    aliases=("dense-associative-memory", "krotov-hopfield"),
    reads=("numbers",),
    outputs=("each",),
    owns_head=True,
    closed_form=("bit-pattern",),
    preset="quick",
)
