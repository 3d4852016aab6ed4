"""The Theta method as a model file: several values a step, settings that do not fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unrolled.core import discover
from unrolled.core.errors import UsageError
from unrolled.core.spec import Sizes

SPEC = discover.model("theta")


def test_values_of_a_step_share_the_rate_and_have_states_of_their_own() -> None:
    random, t = np.random.default_rng(0), np.arange(80)
    x = np.stack([40 + 0.5 * t + random.normal(size=80), 4000 - 40 * t + 100 * random.normal(size=80)], 1)
    model = SPEC.make(SPEC.config(), Sizes(2, 6, horizon=3, d_step=2))
    assert set(model.solve([x[:60]])) == {"seasonal", "alpha"}
    y = model(torch.from_numpy(x[None]).float())[0][0, 75].view(3, 2)
    np.testing.assert_allclose(y[:, 0], x[76:79, 0], atol=5)
    np.testing.assert_allclose(y[:, 1], x[76:79, 1], atol=500)


def test_the_season_is_that_of_the_data_unless_it_is_given() -> None:
    sizes = Sizes(1, 3, horizon=3, d_step=1, season=7)
    assert SPEC.make(SPEC.config(), sizes).layer.steps == 7
    assert SPEC.make(SPEC.config(season=4), sizes).layer.steps == 4
    with pytest.raises(UsageError, match="seasonal = 'additive' needs a season of at least 2 steps"):
        SPEC.make(SPEC.config.parse({"seasonal": "additive"}), Sizes(1, 3, horizon=3, d_step=1))
