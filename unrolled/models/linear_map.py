"""Linear map: the next H values as a linear function of the last L, fitted in closed form by ridge regression.

    y_{t+h} = b_h + sum_{tau < L} W_{h,tau} x_{t-tau}                        h = 1 .. H

One map serves all channels and series (weights = shared), or every forecast looks at all channels (joint). N-linear
takes the last value off and adds it again; D-linear splits a moving average off (layers/counting/linear_map.py). The
strength of the ridge is chosen on validation data, and so is L unless it is given: few lags serve where there is little
data, and a season is seen only with more lags than it has steps.

Zeng, Chen, Zhang & Xu (2023), "Are Transformers Effective for Time Series Forecasting?".
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from unrolled.core import config
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.counting.forecaster import Apart, Forecaster, Jointly
from unrolled.layers.counting.linear_map import RidgeMap

FORMS = ("linear", "n-linear", "d-linear")
LAGS, LARGEST = 336, 1024  # that are read at most, and where a season has more steps


class Config(config.Config):
    lags: int | None = Field(None, ge=1)
    """Number of past values L, or fewer if the training series are too short. None: the best on validation data of 336,
    a season and a horizon, and a season and one step."""
    form: Literal["n-linear", "linear", "d-linear", "auto"] = "n-linear"
    """Form of the map: linear, N-linear (relative to the last value) or D-linear; auto: the best on validation data."""
    weights: Literal["shared", "joint"] = "shared"
    """One map for each channel, with shared weights, or a joint one of all channels."""


def lags_of(season: int, horizon: int, d_step: int = 1) -> tuple[int, ...]:
    """Numbers of lags that are tried, the largest first.

    >>> lags_of(12, 12), lags_of(336, 48), lags_of(1, 6)
    ((336, 24, 13), (384, 337), (336, 7, 2))
    """
    far = season + (horizon if season == 1 else min(horizon, season))
    most = max(LAGS, far) if season > 1 and far * d_step <= LARGEST else LAGS
    return (most, *sorted({each for each in (far, season + 1) if each < most}, reverse=True))


def make(config: Config, sizes: Sizes) -> Forecaster:
    forms = FORMS if config.form == "auto" else (config.form,)
    D = 1 if config.weights == "shared" else sizes.d_step or sizes.d_out
    lags = lags_of(sizes.season, sizes.horizon, D) if config.lags is None else (config.lags,)
    body = RidgeMap(D, sizes.horizon, lags, forms)
    return (Apart if config.weights == "shared" else Jointly)(sizes, body, body.length)


MODEL = ModelSpec(
    summary="the next H values as a linear function of the last L; fitted in closed form",
    kind="causal",
    config=Config,
    tiny=Config(lags=4),
    make=make,
    reference="Zeng, Chen, Zhang & Xu 2023",
    aliases=("dlinear", "nlinear", "ltsf-linear"),
    reads=("numbers",),
    outputs=("each",),
    owns_head=True,
    closed_form=("horizon",),
    preset="quick",
)
