"""Bidirectional recurrent network: one simple recurrence for each direction.

    h_f^(t) = sigma(W^f h_f^(t-1) + U^f x^(t) + b^f)
    h_r^(t) = sigma(W^r h_r^(t+1) + U^r x^(t) + b^r)        y^(t) = [h_f^(t); h_r^(t)]

Schuster & Paliwal (1997); Liquet, Moka & Nazarathy (2024), eq. (7.14), stacked as in (7.15). The reverse pass begins
at each row's own last step.
"""

from __future__ import annotations

from typing import Literal

from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.recurrent.cells import Elman
from unrolled.layers.recurrent.family import BidirectionalConfig, bidirectional_stack
from unrolled.layers.recurrent.recurrent import BidirectionalStack


class Config(BidirectionalConfig):
    activation: Literal["tanh", "relu", "sigmoid", "identity"] = "tanh"
    """Sigma."""


def make(config: Config, sizes: Sizes) -> BidirectionalStack:
    return bidirectional_stack(config, sizes.d_in, lambda d, m: Elman(d, m, activation=config.activation))


MODEL = ModelSpec(
    summary="bidirectional simple recurrent network",
    kind="encoder",
    config=Config,
    tiny=Config(d_state=3),
    make=make,
    reference="Schuster & Paliwal 1997; eq. (7.14)",
    aliases=("bidirectional", "bidirectional-rnn"),
    outputs=("each", "whole"),
    preset="standard",
    resize=Config.resized,
)
