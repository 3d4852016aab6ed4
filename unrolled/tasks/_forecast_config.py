"""What can be said of a forecast: the settings of the task. Imports no torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from unrolled.core import config
from unrolled.data.time_series.codec import Scaling, Transform
from unrolled.data.time_series.reading import SeriesReading

MOST = 10_000  # steps of a horizon or a look-back


class Evaluating(config.Config):
    """Which part of time is held out, and where forecasts are made in it."""

    test_from: Annotated[str, Field(coerce_numbers_to_str=True)] | None = None
    """the time from which on everything is for test; none: the last part, by `split`"""

    test_steps: int | None = Field(None, ge=1)
    """how many of the last steps are for test"""

    backtest: int | None = Field(None, ge=1, le=1000)
    """test on so many forecasts one after the other at the end of the data, each a whole horizon (rolling origin)"""

    stride: int | None = Field(None, ge=1)
    """steps from one evaluated forecast to the next; none: 1, and a whole horizon with `backtest`"""


class Config(config.Config):
    series: SeriesReading = SeriesReading()
    evaluating: Evaluating = Evaluating()
    horizon: int | None = Field(None, ge=1, le=MOST)
    """how many steps are forecast; none: one season, at most a tenth of the data"""
    lookback: int | None = Field(None, ge=1, le=MOST)
    """how many steps a trained model reads before a forecast; none: three horizons or two seasons"""
    by: Literal["auto", "direct", "rollout", "sequence"] = "auto"
    """how a trained model comes to all steps: it predicts them at once; one after the other, each from draws of those
    before it, so that the steps of a path belong together (rollout); or likewise behind an encoder that has read the
    window (sequence); auto: sequence for encoder-decoders, direct for others"""
    samples: int = Field(100, ge=1, le=10_000)
    """paths that are drawn for a forecast by rollout or sequence"""
    season: int | None = Field(None, ge=1, le=100_000)
    """after how many steps series repeat themselves; none: found in the training data, 1 is no season"""
    distribution: Literal["quantiles", "gaussian", "student-t", "negative-binomial", "point"] = "quantiles"
    """what a trained model predicts of each number: quantiles, a distribution, or the number itself"""
    loss: Literal["l2", "l1", "huber"] = "l2"
    """for distribution = point: the loss that training minimises"""
    relative: Literal["last", "window", "none"] = "last"
    """what a trained model's predictions are relative to: the last observed value; mean and deviation of the window
    that is read (reversible instance normalisation); or nothing"""
    scaling: Scaling = "standard"
    """how each series is scaled by its training data: mean 0 and deviation 1, the mean size 1, or not at all"""
    transform: Transform = "none"
    """a function of all values, undone in forecasts: the logarithm, for series whose changes grow with their level"""
