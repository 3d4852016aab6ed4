"""Autoregression as a model file: where it forecasts, and where it does not."""

from __future__ import annotations

import numpy as np
import torch

from unrolled.core import discover
from unrolled.core.spec import Sizes
from unrolled.layers.counting.autoregression import Autoregression

SPEC = discover.model("ar")


def test_several_values_of_a_step_are_a_vector_autoregression() -> None:
    leading = np.random.default_rng(0).normal(size=400)
    x = np.stack([leading[1:], leading[:-1]], 1)  # the second follows the first by a step
    model = SPEC.make(SPEC.config(order=2), Sizes(2, 4, horizon=2, d_step=2)).double()
    model.solve([x])
    y = model(torch.from_numpy(x)[None])[0][0].detach().numpy().reshape(-1, 2, 2)  # [T, H, D]
    np.testing.assert_allclose(y[5:-1, 0, 1], x[6:, 1], atol=1e-9)
    assert model.layer.weight.numel() == 8
    assert model.receptive_field == 2


def test_orders_up_to_a_season_are_tried() -> None:
    sizes = {season: Sizes(1, 3, horizon=3, d_step=1, season=season) for season in (1, 12, 48)}
    assert [SPEC.make(SPEC.config(), each).layer.order for each in sizes.values()] == [32, 32, 56]
    assert SPEC.make(SPEC.config(order=5), sizes[48]).layer.order == 5
    wide = SPEC.make(SPEC.config(), Sizes(100, 300, horizon=3, d_step=100))
    assert wide.layer.order == 10


def test_elsewhere_it_is_as_before() -> None:
    body = SPEC.make(SPEC.config(), Sizes(3, 2))
    assert isinstance(body, Autoregression)
    assert body.order == 16
