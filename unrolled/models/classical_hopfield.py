"""Classical Hopfield network: patterns of -1 and +1 as valleys of a quadratic energy.

    E = -1/2 xi^T W xi + U^T xi,        xi_i <- sgn(sum_j W_ij xi_j - U_i)                           (7.1)-(7.3)

W is stored by Hebb's rule, the pseudo-inverse or Storkey's rule (layers/memory/classical.py). Hebb's rule keeps about
0.138 d random patterns of d bits.

Hopfield (1982); Personnaz, Guyon & Dreyfus (1985); Storkey (1997).
"""

from __future__ import annotations

from pydantic import Field

from unrolled.core import config
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.memory.classical import Classical, Rule
from unrolled.layers.memory.memory import Order, Updates


class Config(config.Config):
    rule: Rule = "hebb"
    """How patterns are stored: outer products (hebb), pseudo-inverse or storkey."""
    updates: Updates = "asynchronous"
    """Whether bits are updated one after the other, or all at once from the state before (synchronous)."""
    order: Order = "random"
    """Order of asynchronous updates."""
    threshold: float = Field(0.0)
    """The field U that a bit must overcome to become +1."""
    seed: int = Field(0, ge=0)
    """Seed of the random order."""


def make(config: Config, sizes: Sizes) -> Classical:
    return Classical(sizes.d_in, config.rule, config.updates, config.order, config.threshold, config.seed)


MODEL = ModelSpec(
    summary="classical Hopfield network: bits with symmetric couplings; stores about 0.138 d patterns",
    kind="memory",
    config=Config,
    tiny=Config(order="fixed"),
    make=make,
    reference="Hopfield 1982",
    aliases=("hopfield-network", "hopfield-1982"),
    reads=("numbers",),
    outputs=("each",),
    owns_head=True,
    closed_form=("bit-pattern",),
    preset="quick",
)
