"""Bidirectional LSTM: one long short-term memory for each direction.

    h_f^(t), c_f^(t) = LSTM_f(x^(t), h_f^(t-1), c_f^(t-1))        eqs (7.16)-(7.17)
    h_r^(t), c_r^(t) = LSTM_r(x^(t), h_r^(t+1), c_r^(t+1))        y^(t) = [h_f^(t); h_r^(t)], eq. (7.14)

Graves & Schmidhuber (2005). The reverse pass begins at each row's own last step.
"""

from __future__ import annotations

from pydantic import Field

from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.recurrent.cells import LSTM
from unrolled.layers.recurrent.family import BidirectionalConfig, bidirectional_stack
from unrolled.layers.recurrent.recurrent import BidirectionalStack


class Config(BidirectionalConfig):
    d_proj: int | None = Field(None, ge=1)
    """Width of the projected h in each direction; none: d_state."""


def make(config: Config, sizes: Sizes) -> BidirectionalStack:
    return bidirectional_stack(config, sizes.d_in, lambda d, m: LSTM(d, m, d_proj=config.d_proj))


MODEL = ModelSpec(
    summary="bidirectional long short-term memory",
    kind="encoder",
    config=Config,
    tiny=Config(d_state=3, n_layers=2),
    make=make,
    reference="Graves & Schmidhuber 2005; eqs (7.14), (7.16)-(7.17)",
    aliases=("bidirectional-lstm", "blstm"),
    outputs=("each", "whole"),
    preset="standard",
    resize=Config.resized,
)
