"""The Theta method against statsmodels, at each step of a series; its season, its rate, missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from statsmodels.tsa.forecasting.theta import ThetaModel
from statsmodels.tsa.seasonal import seasonal_decompose

from tests.layers.test_smoothing import series
from unrolled.core.errors import DataError
from unrolled.layers.counting import theta
from unrolled.layers.counting.forecaster import Span
from unrolled.layers.counting.theta import FittedTheta, Theta, season_of, significant
from unrolled.testing import check_causal

CASES = [("none", 1), ("additive", 4), ("multiplicative", 4), ("additive", 7), ("multiplicative", 7)]


def span(y: NDArray[np.float64], seen: NDArray[np.bool_] | None = None) -> Span:
    return Span(y[:, None], (np.ones(len(y), bool) if seen is None else seen)[:, None])


def layer_of(seasonal: str, season: int, alpha: float = 0.4, horizon: int = 9) -> Theta:
    layer = Theta(horizon, season, seasonal).double()
    layer.set_form(seasonal, alpha)
    return layer


def forecasts(layer: Theta, y: NDArray[np.float64], seen: NDArray[np.bool_] | None = None) -> Any:
    """[T, H]"""
    known = np.ones(len(y)) if seen is None else seen
    return layer(torch.from_numpy(np.stack([np.where(known > 0, y, 1e9), known], 1))[None])[0][0].numpy()


def theirs(y: NDArray[np.float64], seasonal: str, season: int) -> Any:
    method = "auto" if seasonal == "none" else seasonal
    return ThetaModel(y, period=season, deseasonalize=season > 1, use_test=False, method=method).fit()


@pytest.mark.parametrize(("seasonal", "season"), CASES)
def test_forecasts_equal_those_of_statsmodels(seasonal: str, season: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the end of each part of a series, in one pass, whatever number of steps is taken at once."""
    y = series(70, season if season > 1 else 5)
    for end in (2 * season + 2, 40, 63, 70):
        if end < 6:
            continue
        model = theirs(y[:end], seasonal, season)
        layer = layer_of(seasonal, season, model.params["alpha"])
        for at_once in (128, 3):
            monkeypatch.setattr(theta, "AT_ONCE", at_once)
            np.testing.assert_allclose(forecasts(layer, y)[end - 1], model.forecast(9), rtol=1e-8)


@pytest.mark.parametrize(("seasonal", "season"), CASES)
def test_the_rate_is_that_of_statsmodels(seasonal: str, season: int) -> None:
    random = np.random.default_rng(0)
    level = 100 + np.cumsum(0.5 * random.normal(size=300))
    y = level + 3 * random.normal(size=300) + (10 * np.sin(2 * np.pi * np.arange(300) / season) if season > 1 else 0)
    layer = FittedTheta(3, season, seasonal)
    chosen = layer.solve([span(y)])
    assert chosen == {"alpha": pytest.approx(theirs(y, seasonal, season).params["alpha"], abs=0.02)}
    assert layer.seasonal == seasonal
    assert 0.05 < chosen["alpha"] < 0.5


@pytest.mark.parametrize("season", [4, 7])
@pytest.mark.parametrize("multiplies", [True, False])
def test_the_season_is_that_of_classical_decomposition(season: int, multiplies: bool) -> None:
    y = series(61, season)
    wanted = seasonal_decompose(y, model="mul" if multiplies else "add", period=season).seasonal[:season]
    np.testing.assert_allclose(season_of(torch.from_numpy(y), season, multiplies), wanted, rtol=1e-9)


def test_a_season_must_be_significant() -> None:
    random, t = np.random.default_rng(0), np.arange(96)
    season, noise = np.sin(2 * np.pi * t / 12), random.normal(size=(20, 96))
    assert significant([season + 0.5 * noise[0]], 12)
    assert sum(significant([each], 12) for each in noise) <= 3
    assert significant([season + 0.5 * noise[0], season + 0.5 * noise[1], noise[2]], 12)  # most of them
    assert not significant([season[:20]], 12)
    assert not significant([np.ones(96)], 12)


@pytest.mark.parametrize("n", [30, 40, 90])
def test_it_is_where_statsmodels_says_so(n: int) -> None:
    for seed in range(6):
        t, random = np.arange(n), np.random.default_rng(seed)
        y = 20 + np.sin(2 * np.pi * t / 12) + random.normal(size=n)
        decided = ThetaModel(y, period=12)
        decided.fit()
        assert significant([y], 12) == decided._has_seasonality


def test_the_season_is_chosen() -> None:
    random, t = np.random.default_rng(0), np.arange(96)
    season, noise = np.sin(2 * np.pi * t / 12), 0.5 * random.normal(size=96)
    cases = {"multiplicative": 10 + season + noise, "additive": season + noise, "none": noise + 10}
    for seasonal, y in cases.items():
        layer = FittedTheta(3, 12, "auto")
        assert layer.solve([span(y)])["seasonal"] == seasonal == layer.seasonal


@pytest.mark.parametrize(("seasonal", "season"), CASES)
def test_missing_values_do_not_count(seasonal: str, season: int) -> None:
    y, seen = series(60, 4), np.ones(60, bool)
    seen[[33, 41, 42]] = False
    layer = layer_of(seasonal, season)
    found = forecasts(layer, y, seen)
    assert (np.abs(found[43:50, 0] - y[44:51]) < 0.5 * y[44:51]).all()  # a value of 1e9 is nowhere
    if seasonal == "none":
        t = np.flatnonzero(seen)
        level = y[0]
        for v in y[t[1:]]:
            level += 0.4 * (v - level)
        drift = np.polyfit(t, y[t], 1)[0] / 2 * (1 - 0.6 ** len(t)) / 0.4
        assert found[-1, 0] == pytest.approx(level + drift)


def test_series_start_with_their_first_value() -> None:
    layer, y = layer_of("multiplicative", 4), series(30, 4)
    found = forecasts(layer, np.concatenate([np.zeros(5), y]), np.arange(35) >= 5)
    np.testing.assert_allclose(found[5:], forecasts(layer, y), rtol=1e-12)
    assert not found[:5].any()


def test_until_two_seasons_were_read_it_is_naive() -> None:
    y = series(12, 3)
    found = forecasts(layer_of("additive", 3), y)
    assert found[4, :4].tolist() == [y[2], y[3], y[4], y[2]]
    assert not np.isin(found[5], y).any()


def test_it_obeys_the_laws_where_the_season_multiplies() -> None:
    """An additive season goes through the laws as a model."""
    x = torch.tensor([[[5.0, 1], [7, 1], [6, 1], [9, 1], [8, 0], [9, 1], [7, 1]]])
    check_causal(Theta(3, 2, "multiplicative"), x)


def test_what_cannot_be_fitted_is_told() -> None:
    with pytest.raises(DataError, match=r"a season of 12 needs at least 24 steps .* the longest series has 20"):
        FittedTheta(3, 12, "additive").solve([span(np.arange(20.0))])
    with pytest.raises(DataError, match="needs values above 0"):
        FittedTheta(3, 4, "multiplicative").solve([span(np.arange(40.0))])


def test_a_constant_is_continued() -> None:
    for seasonal in ("none", "additive", "multiplicative"):
        layer = FittedTheta(3, 4, seasonal).double()
        layer.solve([span(np.full(40, 7.0))])
        np.testing.assert_allclose(forecasts(layer, np.full(40, 7.0)), 7.0)
