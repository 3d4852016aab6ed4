"""Elman network: the simple recurrent network.

    h_t = sigma(W h_{t-1} + U x_t + b)

Elman (1990); Liquet, Moka & Nazarathy (2024), eq. (7.2). The output y_t = sigma_y(V h_t + c) is the task's head.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from unrolled.layers.cells import Cell, Elman
from unrolled.layers.decoders import AttentionDecoder, attention_decoder
from unrolled.layers.family import RecurrentConfig, stack
from unrolled.layers.recurrent import Stacked

KIND = "causal"
REFERENCE = "Elman 1990; eq. (7.2)"
ALIASES = ("rnn", "simple-rnn", "vanilla-rnn", "srn")
PRESET = "quick"


class Config(RecurrentConfig):
    activation: Literal["tanh", "relu", "sigmoid", "identity"] = "tanh"
    """Sigma."""


TINY = Config(d_state=5)


def cell_of(config: Config) -> Callable[[int, int], Cell]:
    return lambda d, m: Elman(d, m, activation=config.activation)


def make(config: Config, d_in: int, d_out: int) -> Stacked:
    return stack(config, d_in, cell_of(config))


def attending(config: Config, d_in: int, d_source: int) -> AttentionDecoder:
    return attention_decoder(config, d_in, d_source, cell_of(config))
