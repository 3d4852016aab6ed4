"""Linear map: the next H values as a linear function of the last L, fitted in closed form by ridge regression.

    y_{t+h} = b_h + sum_{tau < L} W_{h,tau} x_{t-tau}                        h = 1 .. H

One map serves all channels and series (weights = shared), or every forecast looks at all channels (joint). N-linear
takes the last value off and adds it again; D-linear splits a moving average off (layers/counting/linear_map.py). The
strength of the ridge is chosen on validation data.

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


class Config(config.Config):
    lags: int = Field(336, ge=1)
    """Number of past values L, or fewer if the training series are too short."""
    form: Literal["n-linear", "linear", "d-linear", "auto"] = "n-linear"
    """Form of the map: linear, N-linear (relative to the last value) or D-linear; auto: the best on validation data."""
    weights: Literal["shared", "joint"] = "shared"
    """One map for each channel, with shared weights, or a joint one of all channels."""


def make(config: Config, sizes: Sizes) -> Forecaster:
    forms = FORMS if config.form == "auto" else (config.form,)
    if config.weights == "shared":
        return Apart(sizes, RidgeMap(1, sizes.horizon, config.lags, forms), config.lags)
    body = RidgeMap(sizes.d_step or sizes.d_out, sizes.horizon, config.lags, forms)
    return Jointly(sizes, body, config.lags)


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
