"""Bidirectional GRU: one gated recurrent unit for each direction.

    h_f^(t) = GRU_f(x^(t), h_f^(t-1))        eqs (7.18)-(7.19), or torch's form: see `gru`
    h_r^(t) = GRU_r(x^(t), h_r^(t+1))        y^(t) = [h_f^(t); h_r^(t)], eq. (7.14)

Cho et al. (2014), in both directions as in Bahdanau et al. (2015). The reverse pass begins at each row's own last step.
"""

from __future__ import annotations

from typing import Literal

from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.recurrent.cells import GRU, BookGRU
from unrolled.layers.recurrent.family import BidirectionalConfig, bidirectional_stack
from unrolled.layers.recurrent.recurrent import BidirectionalStack


class Config(BidirectionalConfig):
    reset: Literal["after", "before"] = "after"
    """Where the reset gate is applied: after the matrix product (weights are interchangeable with torch.nn.GRU) or
    before it."""


def make(config: Config, sizes: Sizes) -> BidirectionalStack:
    return bidirectional_stack(config, sizes.d_in, GRU if config.reset == "after" else BookGRU)


MODEL = ModelSpec(
    summary="bidirectional gated recurrent unit",
    kind="encoder",
    config=Config,
    tiny=Config(d_state=3),
    make=make,
    reference="Bahdanau et al. 2015; eqs (7.14), (7.18)-(7.19)",
    aliases=("bidirectional-gru",),
    outputs=("each", "whole"),
    preset="quick",
    resize=Config.resized,
)
