"""Exponential smoothing as a model file: several values a step, settings that do not fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unrolled.core import discover
from unrolled.core.errors import UsageError
from unrolled.core.spec import Sizes

SPEC = discover.model("ets")


def test_values_of_a_step_share_rates_and_have_states_of_their_own() -> None:
    random, t = np.random.default_rng(0), np.arange(80)
    x = np.stack([40 + 0.5 * t + random.normal(size=80), 4000 - 90 * t + 100 * random.normal(size=80)], 1)
    model = SPEC.make(SPEC.config(), Sizes(2, 6, horizon=3, d_step=2))
    chosen = model.solve([x[:60]], [(x, 60)])
    assert chosen["trend"] in ("additive", "damped")
    assert model.layer.rates.shape == (4,)
    y = model(torch.from_numpy(x[None]).float())[0][0, 75].view(3, 2)
    np.testing.assert_allclose(y[:, 0], x[76:79, 0], atol=4)
    np.testing.assert_allclose(y[:, 1], x[76:79, 1], atol=400)


def test_a_season_of_one_step_is_none() -> None:
    with pytest.raises(UsageError, match="seasonal = 'additive' needs a season of at least 2 steps"):
        SPEC.make(SPEC.config.parse({"seasonal": "additive"}), Sizes(1, 3, horizon=3, d_step=1))
    SPEC.make(SPEC.config.parse({"seasonal": "additive", "season": 2}), Sizes(1, 3, horizon=3, d_step=1))


def test_the_season_is_that_of_the_data_unless_it_is_given() -> None:
    sizes = Sizes(1, 3, horizon=3, d_step=1, season=7)
    assert SPEC.make(SPEC.config(), sizes).layer.season == 7
    assert SPEC.make(SPEC.config(season=4), sizes).layer.season == 4
    assert SPEC.make(SPEC.config(season=1), sizes).layer.season == 1
