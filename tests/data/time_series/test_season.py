"""Seasons are found where there are some."""

from __future__ import annotations

import numpy as np
import pytest

from unrolled.data.time_series.season import find_season
from unrolled.data.time_series.stamps import Step

T = np.arange(120.0)
NOISE = np.random.default_rng(0).normal(size=len(T))


@pytest.mark.parametrize(
    ("values", "season"),
    [
        (3 * T + 10 * np.sin(2 * np.pi * T / 12), 12),  # a trend that is larger than the season
        (np.where(T % 7 == 0, np.nan, 3 * T + 10 * np.sin(2 * np.pi * T / 12)), 12),
        (np.exp(T / 80) * (5 + np.sin(2 * np.pi * T / 12)), 12),
        (np.sin(2 * np.pi * T / 9) + 0.1 * NOISE, 9),
        (3 * T + 0.5, 1),
        (NOISE, 1),
        (NOISE.cumsum(), 1),
    ],
)
def test_the_season_of_a_series(values: np.ndarray, season: int) -> None:
    assert find_season([values[:, None]], Step(1, "months"), 12) == season


def test_without_values_there_is_no_season() -> None:
    assert find_season([], None, 12) == 1
    assert find_season([np.full((40, 1), np.nan)], None, 12) == 1
