"""Linear recurrent unit: a recurrence without a non-linearity.

    h_t = W_rec h_{t-1} + W_in x_t

With a shift matrix for W_rec it is exactly an autoregressive model (Wang 2024, lecture 11).
"""

from __future__ import annotations

from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.recurrent.cells import LinearUnit
from unrolled.layers.recurrent.family import RecurrentConfig, stack
from unrolled.layers.recurrent.recurrent import Stacked

Config = RecurrentConfig


def make(config: Config, sizes: Sizes) -> Stacked:
    return stack(config, sizes.d_in, LinearUnit)


MODEL = ModelSpec(
    summary="linear recurrent network, without a non-linearity",
    kind="causal",
    config=Config,
    tiny=Config(d_state=5),
    make=make,
    reference="Wang 2024, CS 577 lecture 11",
    preset="standard",
    resize=Config.resized,
)
