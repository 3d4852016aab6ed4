"""Linear recurrent unit: memory without a non-linearity.

    h_t = W_rec h_{t-1} + W_in x_t

With a shift matrix for W_rec it is exactly an autoregressive model (Wang 2024, lecture 11).
"""

from __future__ import annotations

from unrolled.layers.cells import LinearUnit
from unrolled.layers.family import RecurrentConfig, stack
from unrolled.layers.recurrent import Stacked

KIND = "causal"
REFERENCE = "Wang 2024, CS 577 lecture 11"
PRESET = "standard"
Config = RecurrentConfig
TINY = Config(d_state=5)


def make(config: RecurrentConfig, d_in: int, d_out: int) -> Stacked:
    return stack(config, d_in, LinearUnit)
