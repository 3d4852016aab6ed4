"""Memoryless, a baseline: a feed-forward network on each step alone, which shows what memory is worth.

    h_t = sigma(U x_t + b)        for each layer; nothing is carried from t to t + 1

Receptive field 1: decisions frame by frame, as in the opening example of Krähenbühl & Wu (2019).
"""

from __future__ import annotations

from typing import Literal

from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.recurrent.cells import Memoryless
from unrolled.layers.recurrent.family import RecurrentConfig, stack
from unrolled.layers.recurrent.recurrent import Stacked


class Config(RecurrentConfig):
    activation: Literal["tanh", "relu", "sigmoid", "identity"] = "relu"
    """Sigma."""


def make(config: Config, sizes: Sizes) -> Stacked:
    return stack(config, sizes.d_in, lambda d, m: Memoryless(d, m, activation=config.activation))


MODEL = ModelSpec(
    summary="baseline: a feed-forward network on each step alone, which shows what memory is worth",
    kind="causal",
    config=Config,
    tiny=Config(d_state=5, n_layers=2),
    make=make,
    reference="Krähenbühl & Wu 2019",
    preset="quick",
    always=True,
    resize=Config.resized,
)
