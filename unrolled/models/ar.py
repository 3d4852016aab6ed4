"""Autoregressive AR(s): a linear function of the last s inputs.

    y_t = sum_{tau < s} W_tau x_{t-tau} + b

Vector-valued; it owns its head, because the output is the prediction. Where the targets are series, as in denoise, it
reads the numbers as they are and is fitted in closed form by least squares (layers/counting/autoregression.py). Tokens
and bits have another loss than the square and so no closed form: there it is trained by gradient descent.

Yule (1927); Wang (2024), lecture 11.
"""

from __future__ import annotations

from pydantic import Field

from unrolled.core import config
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.counting.autoregression import Autoregression


class Config(config.Config):
    order: int = Field(16, ge=1)
    """Number of past inputs: s."""


def make(config: Config, sizes: Sizes) -> Autoregression:
    return Autoregression(sizes.d_in, sizes.d_out, config.order)


MODEL = ModelSpec(
    summary="autoregression: a linear function of the last s inputs",
    kind="causal",
    config=Config,
    tiny=Config(order=3),
    make=make,
    reference="Yule 1927; Wang 2024, CS 577 lecture 11",
    aliases=("autoregression", "autoregressive"),
    outputs=("next", "each"),
    owns_head=True,
    closed_form=("series",),
    preset="standard",
)
