"""Exponential smoothing: a level, a trend and a season that follow the series, each by its own rate; fitted.

    l_t = a + alpha e_t,  b_t = phi b_{t-1} + beta e_t,  s_t = s_{t-m} + gamma e_t         a = l_{t-1} + phi b_{t-1}
    e_t = y_t - (a + s_{t-m}),    y_{t+h} = l_t + (phi + .. + phi^h) b_t + s_{t+h-m}

Simple, Holt's and Holt-Winters' methods; the trend may be damped and the season may multiply
(layers/counting/smoothing.py). The rates minimise the squared one-step errors of all series of the data, which share
them; each series has a state of its own. Trend and season that are `auto` are chosen on validation data or, where
there is none, by AICc.

Holt (1957), Winters (1960), Hyndman, Koehler, Ord & Snyder (2008).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from unrolled.core import config
from unrolled.core.errors import UsageError
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.counting.forecaster import Apart
from unrolled.layers.counting.smoothing_fit import FittedSmoothing, forms_of


class Config(config.Config):
    season: int = Field(0, ge=0)
    """Number of steps per season: 12 for months, 24 for hours; 1: no season; 0: the season of the data."""
    trend: Literal["auto", "none", "additive", "damped"] = "auto"
    """Trend: none, additive, or damped."""
    seasonal: Literal["auto", "none", "additive", "multiplicative"] = "auto"
    """Whether the season is additive or multiplicative; a multiplicative one needs values above 0."""


def make(config: Config, sizes: Sizes) -> Apart:
    season = config.season or sizes.season
    if season == 1 and config.seasonal in ("additive", "multiplicative"):
        raise UsageError(f"seasonal = '{config.seasonal}' needs a season of at least 2 steps, such as season = 12")
    forms = forms_of(config.trend, config.seasonal, season)
    return Apart(sizes, FittedSmoothing(sizes.horizon, season, forms))


MODEL = ModelSpec(
    summary="exponential smoothing of level, trend and season (Holt-Winters); fitted in closed form",
    kind="causal",
    config=Config,
    tiny=Config(season=3),
    make=make,
    reference="Holt 1957; Winters 1960; Hyndman et al. 2008",
    aliases=("exponential-smoothing", "holt-winters", "holt", "simple-exponential-smoothing"),
    reads=("units",),
    outputs=("each",),
    owns_head=True,
    closed_form=("horizon",),
)
