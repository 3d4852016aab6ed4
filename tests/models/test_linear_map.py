"""The linear map as a model file: channels shared or joint."""

from __future__ import annotations

import numpy as np
import torch

from unrolled.core import discover
from unrolled.core.spec import Sizes
from unrolled.layers.counting.forecaster import Apart

SPEC = discover.model("linear-map")


def fitted(weights: str, x: np.ndarray) -> tuple[Apart, np.ndarray]:
    """A model, and the mean square [D] of its forecasts two steps ahead on the data."""
    sizes = Sizes(2, 4, horizon=2, d_step=2)
    model = SPEC.make(SPEC.config.parse({"lags": 3, "weights": weights}), sizes).double()
    model.solve([x])
    y = model(torch.from_numpy(x)[None])[0][0].detach().numpy().reshape(-1, 2, 2)  # [T, H, D]
    return model, ((y[5:-2, 1] - x[7:]) ** 2).mean(0)


def test_joint_maps_see_other_channels() -> None:
    leading = np.random.default_rng(0).normal(size=400)
    x = np.stack([leading[2:], leading[:-2]], 1)  # the second follows the first by two steps
    shared, alone = fitted("shared", x)
    joint, together = fitted("joint", x)
    assert together[1] < 1e-3 < 0.9 < alone[1]
    assert shared.layer.weight.shape == (2, 3, 1)
    assert joint.layer.weight.shape == (4, 3, 2)
    assert (shared.receptive_field, joint.receptive_field) == (3, 3)
    missing = SPEC.make(SPEC.tiny, Sizes(4, 4, horizon=2, d_step=2, observed=True))
    assert missing.receptive_field is None


def test_auto_tries_all_forms() -> None:
    model = SPEC.make(SPEC.config.parse({"form": "auto", "lags": 3}), Sizes(1, 2, horizon=2, d_step=1))
    chosen = model.solve([np.random.default_rng(0).normal(size=(50, 1))])
    assert set(chosen) == {"form", "ridge"}
