"""Gated recurrent unit, in both published forms.

    after:   n = tanh(W_n x_t + r * (U_n h_{t-1} + b)),  h_t = (1 - z) * n + z * h_{t-1}     torch, eqs (3.3)-(3.6)
    before:  n = tanh(W_n x_t + U_n (r * h_{t-1}) + b),  h_t = (1 - u) * h_{t-1} + u * n     book, eqs (7.18)-(7.19)

Cho et al. (2014). The forms differ in where the reset gate r acts, and name the update gate oppositely: z = 1 - u.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.parts.decoders import AttentionDecoder, attention_decoder
from unrolled.layers.recurrent.cells import GRU, BookGRU, Cell
from unrolled.layers.recurrent.family import RecurrentConfig, stack
from unrolled.layers.recurrent.recurrent import Stacked


class Config(RecurrentConfig):
    reset: Literal["after", "before"] = "after"
    """Where the reset gate is applied: after the matrix product (weights are interchangeable with torch.nn.GRU) or
    before it."""
    memory: int | None = Field(None, ge=1)
    """Initialise the bias of the update gate so that units remember for 1 to this many steps; none: a few steps."""


def cell_of(config: Config) -> Callable[[int, int], Cell]:
    form = GRU if config.reset == "after" else BookGRU
    memory = config.memory
    return form if memory is None else lambda d, m: form(d, m).remember(memory)


def make(config: Config, sizes: Sizes) -> Stacked:
    return stack(config, sizes.d_in, cell_of(config))


def attending(config: Config, d_in: int, d_source: int) -> AttentionDecoder:
    return attention_decoder(config, d_in, d_source, cell_of(config))


MODEL = ModelSpec(
    summary="gated recurrent unit, in both published forms",
    kind="causal",
    config=Config,
    tiny=Config(d_state=5),
    make=make,
    reference="Cho et al. 2014; eqs (7.18)-(7.19)",
    preset="quick",
    resize=Config.resized,
    attend=attending,
    cell=cell_of,
)
