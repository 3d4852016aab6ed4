"""The settings of forecasts. Imports no torch."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from unrolled.core import config
from unrolled.data.time_series.codec import Scaling, Transform
from unrolled.data.time_series.reading import SeriesReading

MOST = 10_000  # steps of a horizon or a look-back


class Evaluating(config.Config):
    """Which part of time is held out, and where forecasts are made in it."""

    test_from: Annotated[str, Field(coerce_numbers_to_str=True)] | None = None
    """Everything from this time on is test data; none: the last share, by `split`."""

    test_steps: int | None = Field(None, ge=1)
    """Number of last steps that are test data."""

    backtest: int | None = Field(None, ge=1, le=1000)
    """Number of consecutive test forecasts at the end of the data, each of a whole horizon (rolling origin)."""

    stride: int | None = Field(None, ge=1)
    """Steps from one evaluated forecast to the next; none: 1, or a whole horizon with `backtest`; at most 32,768
    forecasts, evenly spread."""


class Config(config.Config):
    series: SeriesReading = SeriesReading()
    evaluating: Evaluating = Evaluating()
    horizon: int | None = Field(None, ge=1, le=MOST)
    """Number of steps to forecast; none: one season, at most a tenth of the data."""
    lookback: int | None = Field(None, ge=1, le=MOST)
    """Number of steps that a trained model reads before a forecast; none: three horizons or two seasons."""
    by: Literal["auto", "direct", "rollout", "sequence"] = "auto"
    """How a trained model predicts several steps: all at once (direct); one after the other as sampled paths (rollout);
    sampled paths after an encoder has read the window (sequence); auto: sequence for encoder-decoders, direct for
    others."""
    samples: int = Field(100, ge=1, le=10_000)
    """Number of sampled paths per forecast, for rollout and sequence."""
    season: int | None = Field(None, ge=1, le=100_000)
    """Number of steps per season; none: estimated from the training data; 1: no season."""
    distribution: Literal["quantiles", "gaussian", "student-t", "negative-binomial", "point"] = "quantiles"
    """What a trained model predicts for each value: quantiles, a distribution, or the value itself (point)."""
    loss: Literal["l2", "l1", "huber"] = "l2"
    """For distribution = point: the training loss."""
    relative: Literal["last", "window", "none"] = "last"
    """What predictions of a trained model are relative to: the last observed value; mean and standard deviation of the
    window (reversible instance normalisation); or nothing."""
    scaling: Scaling = "standard"
    """How each series is scaled by its training data: mean 0 and standard deviation 1, mean absolute value 1, or not at
    all."""
    transform: Transform = "none"
    """Transformation of all values, inverted in forecasts: the logarithm, for series whose changes grow with their
    level."""

    @model_validator(mode="before")
    @classmethod
    def _for_counts(cls, values: Any) -> Any:
        """Counts are predicted as they are, unless told otherwise."""
        if isinstance(values, dict) and values.get("distribution") == "negative-binomial":
            return {"relative": "none", "scaling": "none", **values}
        return values

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        if self.distribution == "negative-binomial" and (self.relative, self.scaling, self.transform) != ("none",) * 3:
            raise ValueError(
                "distribution = negative-binomial is for counts as they are: use relative, scaling and transform = none"
            )
        return self
