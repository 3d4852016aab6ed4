"""Exponential smoothing: its recursion against statsmodels, its start by hand, its state under missing values."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from statsmodels.tsa.exponential_smoothing.ets import ETSModel
from statsmodels.tsa.holtwinters import ExponentialSmoothing

from unrolled.layers.counting.smoothing import FACTOR, SEASONS, TRENDS, Form, Rates, Smoothing, start
from unrolled.testing import check_causal

RATES = Rates(0.35, 0.07, 0.2, 0.9)
FORMS = [Form(*each) for each in itertools.product(TRENDS, SEASONS)]
ADDED = [form for form in FORMS if not form.multiplies]


def series(n: int, season: int, seed: int = 0) -> NDArray[np.float64]:
    """Positive, with a trend and a season."""
    random, t = np.random.default_rng(seed), np.arange(n)
    factors = 1 + 0.3 * np.sin(2 * np.pi * t / season)
    found: NDArray[np.float64] = (50 + 0.4 * t + np.cumsum(random.normal(size=n))) * factors + random.normal(size=n)
    return found


def smoothing(form: Form, season: int = 4, horizon: int = 9) -> Smoothing:
    layer = Smoothing(horizon, season, form).double()
    layer.set_form(form, RATES)
    return layer


def forecasts(layer: Smoothing, y: NDArray[np.float64], seen: NDArray[np.bool_] | None = None) -> Any:
    """[T, H]"""
    x = torch.from_numpy(np.stack([y, np.ones(len(y)) if seen is None else seen], 1))[None]
    return layer(x)[0][0].numpy()


def known(form: Form, y: NDArray[np.float64], season: int) -> dict[str, Any]:
    """The start, as statsmodels takes it."""
    level, trend, seasons = start(torch.from_numpy(y[None, : 2 * season]), form, season)
    found: dict[str, Any] = {"initialization_method": "known", "initial_level": level.item()}
    if form.trend != "none":
        found |= {"trend": "add", "damped_trend": form.trend == "damped", "initial_trend": trend.item()}
    if form.seasonal != "none":
        word = {"additive": "add", "multiplicative": "mul"}[form.seasonal]
        found |= {"seasonal": word, "seasonal_periods": season, "initial_seasonal": seasons[0].numpy()}
    return found


@pytest.mark.parametrize("form", FORMS, ids="-".join)
@pytest.mark.parametrize("season", [4, 7])
def test_forecasts_equal_those_of_holt_and_winters(form: Form, season: int) -> None:
    y = series(60, season)
    fixed = {"smoothing_level": RATES.alpha, "smoothing_trend": RATES.beta / RATES.alpha,
             "smoothing_seasonal": RATES.gamma, "damping_trend": RATES.phi}  # fmt: skip
    used = {name: value for (name, value), free in zip(fixed.items(), form.free) if free}
    model = ExponentialSmoothing(y[2 * season :], **known(form, y, season)).fit(optimized=False, **used)
    found = forecasts(smoothing(form, season), y)
    np.testing.assert_allclose(found[2 * season - 1 : -1, 0], model.fittedvalues, rtol=1e-8)
    steps = [h for h in range(9) if (h + 1) % season]  # what the last value says of its own season is left out there
    np.testing.assert_allclose(found[-1, steps], model.forecast(9)[steps], rtol=1e-8)


@pytest.mark.parametrize("form", ADDED, ids="-".join)
def test_forecasts_equal_those_of_the_state_space_form(form: Form) -> None:
    y = series(50, 4)
    model = ETSModel(y[8:], error="add", **known(form, y, 4))
    rates = [rate for rate, free in zip(RATES, form.free) if free]
    np.testing.assert_allclose(forecasts(smoothing(form), y)[-1], model.smooth(rates).forecast(9), rtol=1e-8)


def test_the_start_is_a_line_through_the_means_of_two_seasons() -> None:
    window = torch.tensor([[1.0, 5, 4, 12]]).double()  # means 3 and 8: a trend of 2.5
    level, trend, season = start(window, Form("additive", "additive"), 2)
    assert (level.item(), trend.item()) == (9.25, 2.5)
    assert season[0].tolist() == [-1.75, 1.75]  # from 1.75, 4.25, 6.75, 9.25: -.75, .75 and -2.75, 2.75
    level, trend, season = start(window, Form("none", "multiplicative"), 2)
    assert (level.item(), trend.item()) == (8.0, 0.0)
    assert season[0].tolist() == pytest.approx([5 / 12, 19 / 12])  # the means of 1/3, 1/2 and of 5/3, 3/2
    level, trend, season = start(window, Form("damped", "none"), 1)
    assert (level.item(), trend.item(), season.tolist()) == (9.25, 2.5, [[0.0]])


def test_until_its_start_it_is_naive() -> None:
    y = series(12, 3)
    found = forecasts(smoothing(Form("additive", "additive"), season=3, horizon=4), y)
    assert found[1].tolist() == [y[1]] * 4
    assert found[4].tolist() == [y[2], y[3], y[4], y[2]]
    assert not np.isin(found[5], y).any()


@pytest.mark.parametrize("form", FORMS, ids="-".join)
def test_a_missing_value_is_what_was_forecast(form: Form) -> None:
    y, seen = series(40, 4), np.ones(40, bool)
    layer = smoothing(form)
    before = forecasts(layer, y)
    seen[20] = False
    y[20] = 1e6
    after = forecasts(layer, y, seen)
    np.testing.assert_allclose(after[20, :8], before[19, 1:], rtol=1e-12)
    filled = y.copy()
    filled[20] = before[19, 0]
    np.testing.assert_allclose(after, forecasts(layer, filled), rtol=1e-9)


def test_series_start_with_their_first_value() -> None:
    layer, y = smoothing(Form("damped", "additive")), series(30, 4)
    late = np.concatenate([np.zeros(5), y])
    found = forecasts(layer, late, np.arange(35) >= 5)
    np.testing.assert_allclose(found[5:], forecasts(layer, y), rtol=1e-12)
    assert not found[:5].any()


def test_it_obeys_the_laws_where_the_season_multiplies() -> None:
    """Other forms go through the laws as models."""
    layer = Smoothing(3, 2, Form("additive", "multiplicative"))
    check_causal(layer, torch.tensor([[[5.0, 1], [7, 1], [6, 1], [9, 1], [8, 0]]]))


def test_factors_of_the_season_stay_within_bounds() -> None:
    layer = smoothing(Form("none", "multiplicative"), season=2)
    y = np.array([1.0, 2, 1, 2, 1e9, 1, 1e-9, 2, -5, 0, 0, 0, 3, 1])
    x = torch.from_numpy(np.stack([y, np.ones(14)], 1))[None].requires_grad_()
    found, state = layer(x)
    found.sum().backward()
    assert bool(found.isfinite().all())
    assert x.grad is not None
    assert bool(x.grad.isfinite().all())
    assert 1 / FACTOR <= state.seasons.min().item() <= state.seasons.max().item() <= FACTOR
