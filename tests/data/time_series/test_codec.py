"""Values there and back in any unit: no digit is made up, and none is lost that was encoded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from unrolled.data.config import DataConfig
from unrolled.data.time_series.codec import moments
from unrolled.data.time_series.prepare import SCALE, prepare_series
from unrolled.data.time_series.reading import SeriesReading
from unrolled.data.time_series.spans import Asked

LINE = np.round(10 + 3 * np.sin(np.arange(60) * 0.9), 3)


def back(values: np.ndarray, scaling: Any = "standard", transform: Any = "none") -> np.ndarray:
    """What is shown of a series."""
    asked = Asked(4, 8, None, transform, scaling, None, None, None)
    found = prepare_series(values, SeriesReading(), asked, DataConfig())
    section, codec = found.sections["train"], found.codecs["series"]
    told = codec.told(section.fields["target"][0].astype(np.float64), np.asarray(section.columns[SCALE])[0])
    return np.array([float(f"{each:.15g}") for each in told[:, 0]])


@pytest.mark.parametrize("scaling", ["standard", "mean", "none"])
@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e9])
def test_values_come_back_in_any_unit(unit: float, scaling: str) -> None:
    assert np.allclose(back(unit * LINE, scaling), unit * LINE, rtol=1e-6, atol=0)


def test_small_changes_of_large_numbers_are_not_lost() -> None:
    assert np.abs(back(1e9 + LINE) - (1e9 + LINE)).max() < 1e-4
    assert back(LINE).tolist() == LINE.tolist()  # without digits that it did not have
    assert np.allclose(back(1e-12 * LINE, transform="log"), 1e-12 * LINE, rtol=1e-5, atol=0)


def test_zero_is_zero_and_a_constant_is_itself() -> None:
    some = np.where(np.arange(60) % 5 == 0, 3.0, 0.0)
    found = back(some)
    assert found.tolist() == some.tolist() and not any(math.copysign(1, v) < 0 for v in found)
    flat = back(np.stack([1e-9 + 0 * LINE, LINE], 1))
    assert flat.tolist() == [1e-9] * 60


def test_covariates_are_scaled_in_any_unit() -> None:
    values = np.arange(5.0)[:, None]
    for unit in (1e-15, 1.0, 1e12):
        assert moments([unit * values], ["c"])[0][2] == pytest.approx(unit * np.arange(5.0).std())
    assert moments([np.full((9, 1), 0.1)], ["c"])[0][2] == 1.0  # of which rounding alone is left
