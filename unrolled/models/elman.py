"""Elman network: the simple recurrent network.

    h_t = sigma(W h_{t-1} + U x_t + b)

Elman (1990); Liquet, Moka & Nazarathy (2024), eq. (7.2). The output y_t = sigma_y(V h_t + c) is the task's head.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.parts.decoders import AttentionDecoder, attention_decoder
from unrolled.layers.recurrent.cells import Cell, Elman
from unrolled.layers.recurrent.family import RecurrentConfig, stack
from unrolled.layers.recurrent.recurrent import Stacked


class Config(RecurrentConfig):
    activation: Literal["tanh", "relu", "sigmoid", "identity"] = "tanh"
    """Sigma."""


def cell_of(config: Config) -> Callable[[int, int], Cell]:
    return lambda d, m: Elman(d, m, activation=config.activation)


def make(config: Config, sizes: Sizes) -> Stacked:
    return stack(config, sizes.d_in, cell_of(config))


def attending(config: Config, d_in: int, d_source: int) -> AttentionDecoder:
    return attention_decoder(config, d_in, d_source, cell_of(config))


MODEL = ModelSpec(
    summary="simple recurrent network",
    kind="causal",
    config=Config,
    tiny=Config(d_state=5),
    make=make,
    reference="Elman 1990; eq. (7.2)",
    aliases=("rnn", "simple-rnn", "vanilla-rnn", "srn"),
    preset="quick",
    resize=Config.resized,
    attend=attending,
    cell=cell_of,
)
