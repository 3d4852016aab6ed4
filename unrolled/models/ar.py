"""Autoregressive AR(s): a linear function of the last s inputs.

    y_t = sum_{tau < s} W_tau x_{t-tau} + b

Vector-valued; it owns its head, because the output is the prediction. Where the targets are series, as in denoise, it
reads the numbers as they are and is fitted in closed form by least squares (layers/counting/autoregression.py). Tokens
and bits have another loss than the square and so no closed form: there it is trained by gradient descent.

Forecasts are fitted in closed form to the next step, with W and b shared by all series of the data, and continue by the
recursion (layers/counting/recursion.py). Where a step of a series has several values it is a vector autoregression.

Yule (1927); Wang (2024), lecture 11.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from unrolled.core import config
from unrolled.core.causal import Causal
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.counting.autoregression import Autoregression
from unrolled.layers.counting.forecaster import Jointly
from unrolled.layers.counting.recursion import FittedRecursion

ORDER = 16  # of what is no forecast
LARGEST, BEYOND = 32, 8  # orders that are tried for forecasts, and how many beyond a season
WIDEST = 1024  # values of all channels that are tried together


class Config(config.Config):
    order: int | None = Field(None, ge=1)
    """Number of past inputs: s. None: 16; for forecasts chosen by `criterion`."""
    criterion: Literal["aic", "bic"] = "aic"
    """For forecasts without a given order: AIC (corrected for short series) or BIC."""
    ridge: float = Field(0.0, ge=0)
    """For forecasts: penalty on the squared weights, relative to the variance of the inputs."""


def make(config: Config, sizes: Sizes) -> Causal:
    if sizes.d_step:
        return _forecaster(config, sizes)
    return Autoregression(sizes.d_in, sizes.d_out, config.order or ORDER)


def _forecaster(config: Config, sizes: Sizes) -> Jointly:
    D = sizes.d_step
    order = config.order or min(max(LARGEST, sizes.season + BEYOND), max(1, WIDEST // D))
    criterion = None if config.order else config.criterion
    layer = FittedRecursion(D, sizes.horizon, order, criterion, config.ridge)
    return Jointly(sizes, layer, order)


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
    closed_form=("series", "horizon"),
    preset="standard",
)
