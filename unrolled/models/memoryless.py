"""Memoryless: each step is decided alone, the baseline that shows what memory is worth.

    h_t = sigma(U x_t + b)        for each layer; nothing is carried from t to t + 1

Receptive field 1: decisions frame by frame, as in the opening example of Krähenbühl & Wu (2019).
"""

from __future__ import annotations

from typing import Literal

from unrolled.layers.cells import Memoryless
from unrolled.layers.family import RecurrentConfig, stack
from unrolled.layers.recurrent import Stacked

KIND = "causal"
REFERENCE = "Krähenbühl & Wu 2019"
PRESET = "quick"


class Config(RecurrentConfig):
    activation: Literal["tanh", "relu", "sigmoid", "identity"] = "relu"
    """Sigma."""


TINY = Config(d_state=5, n_layers=2)


def make(config: Config, d_in: int, d_out: int) -> Stacked:
    return stack(config, d_in, lambda d, m: Memoryless(d, m, activation=config.activation))
