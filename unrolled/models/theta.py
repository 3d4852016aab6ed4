"""The Theta method: the mean of a straight line and of a smoothed level, on seasonally adjusted values; fitted.

    y_{t+h} = (l_t + b/2 (h - 1 + (1 - (1 - alpha)^t) / alpha)) s_{t+h}

l is smoothed with the rate alpha, b the slope of the least squares line, s the season by classical decomposition
(layers/counting/theta.py). The season multiplies, or is added where values are not above 0, and is left out where it is
not significant. alpha minimises the squared one-step errors of all series of the data, which share it; each series has
a level, a slope and a season of its own.

Assimakopoulos & Nikolopoulos (2000); Hyndman & Billah (2003).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from unrolled.core import config
from unrolled.core.errors import UsageError
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.counting.forecaster import Apart
from unrolled.layers.counting.theta import FittedTheta


class Config(config.Config):
    season: int = Field(0, ge=0)
    """Number of steps per season: 12 for months, 24 for hours; 1: no season; 0: the season of the data."""
    seasonal: Literal["auto", "none", "additive", "multiplicative"] = "auto"
    """Whether the season is additive or multiplicative; a multiplicative one needs values above 0."""


def make(config: Config, sizes: Sizes) -> Apart:
    season = config.season or sizes.season
    if season == 1 and config.seasonal in ("additive", "multiplicative"):
        raise UsageError(f"seasonal = '{config.seasonal}' needs a season of at least 2 steps, such as season = 12")
    return Apart(sizes, FittedTheta(sizes.horizon, season, config.seasonal))


MODEL = ModelSpec(
    summary="the Theta method: mean of a trend line and exponential smoothing; fitted in closed form",
    kind="causal",
    config=Config,
    tiny=Config(season=3, seasonal="additive"),
    make=make,
    reference="Assimakopoulos & Nikolopoulos 2000; Hyndman & Billah 2003",
    aliases=("theta-method",),
    reads=("units",),
    outputs=("each",),
    owns_head=True,
    closed_form=("horizon",),
)
