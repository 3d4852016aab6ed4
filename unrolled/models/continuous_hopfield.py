"""Continuous Hopfield network: patterns of any numbers; an update is attention to the stored patterns.

    E = -lse(beta, X xi) + 1/2 xi^T xi + 1/beta log N + 1/2 M^2,        xi <- X^T softmax(beta X xi)   (7.6), (7.7)

beta, unless given, follows from how far the patterns are apart (layers/memory/continuous.py).

Ramsauer et al. (2020).
"""

from __future__ import annotations

from pydantic import Field

from unrolled.core import config
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.memory.continuous import Continuous


class Config(config.Config):
    beta: float | None = Field(None, gt=0)
    """Inverse temperature: small averages over patterns, large recalls a single one; none: from their separation."""


def make(config: Config, sizes: Sizes) -> Continuous:
    return Continuous(sizes.d_in, config.beta)


MODEL = ModelSpec(
    summary="continuous Hopfield network: numbers instead of bits; an update is attention to the stored patterns",
    kind="memory",
    config=Config,
    tiny=Config(beta=1.0),
    make=make,
    reference="Ramsauer et al. 2020",
    aliases=("modern-hopfield",),
    reads=("numbers",),
    outputs=("each",),
    owns_head=True,
    closed_form=("pattern", "bit-pattern"),
    preset="quick",
)
