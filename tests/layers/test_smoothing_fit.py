"""The fit of exponential smoothing: errors against the layer, minima against statsmodels, the choice of a form."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from statsmodels.tsa.exponential_smoothing.ets import ETSModel
from statsmodels.tsa.holtwinters import ExponentialSmoothing

from tests.layers.test_smoothing import ADDED, FORMS, RATES, forecasts, known, series, smoothing
from unrolled.core.errors import DataError
from unrolled.layers.counting import smoothing_fit
from unrolled.layers.counting.forecaster import Span
from unrolled.layers.counting.held_out import spread
from unrolled.layers.counting.smoothing import Form, Rates
from unrolled.layers.counting.smoothing_fit import FittedSmoothing, aicc, fit, forms_of, prepare, rates_of, squares


def span(y: np.ndarray, seen: np.ndarray | None = None, first: int = 0) -> Span:
    return Span(y[:, None], (np.ones(len(y), bool) if seen is None else seen)[:, None], first)


@pytest.mark.parametrize("form", FORMS, ids="-".join)
@pytest.mark.parametrize(("season", "at_once", "gaps"), [(4, 64, 0.0), (4, 64, 0.2), (7, 3, 0.0), (2, 1, 0.0)])
def test_errors_are_those_of_the_layer(
    form: Form, season: int, at_once: int, gaps: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks that are shorter than a season too, for series of different lengths, with missing values."""
    monkeypatch.setattr(smoothing_fit, "AT_ONCE", at_once)
    spans, total = [], 0.0
    for seed, n in enumerate((40, 23, 31)):
        y, seen = series(n, season, seed), np.random.default_rng(seed).random(n) >= gaps
        seen[0] = True
        spans.append(span(y, seen))
        said = forecasts(smoothing(form, season), y, seen)[:-1, 0]
        used = seen[1:] & (np.arange(1, n) >= 2 * season)
        total += float(((said - y[1:])[used] ** 2).sum() / spread(y[2 * season :, None], seen[2 * season :, None])[0])
    none = (0.0, 0.0, 0.0, 1.0)
    rates = np.where(form.free, RATES, none)[None, None]
    assert squares(rates, [form], prepare(spans, season, [form]))[0, 0] == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("form", ADDED, ids="-".join)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_sum_of_squares_is_as_small_as_that_of_statsmodels(form: Form, seed: int) -> None:
    y = series(120, 6, seed)
    data = prepare([span(y)], 6, [form])
    (found,) = fit([form], data)
    theirs = ETSModel(y[12:], error="add", **known(form, y, 6)).fit(disp=False).sse
    assert found.S / data.weight[0] ** 2 < 1.01 * theirs


@pytest.mark.parametrize("trend", ["none", "additive", "damped"])
def test_and_where_the_season_multiplies(trend: str) -> None:
    form, y = Form(trend, "multiplicative"), series(120, 6)
    data = prepare([span(y)], 6, [form])
    (found,) = fit([form], data)
    bounds = {"damping_trend": (0.8, 0.98)} if trend == "damped" else {}
    theirs = ExponentialSmoothing(y[12:], bounds=bounds, **known(form, y, 6)).fit().sse
    assert found.S / data.weight[0] ** 2 < 1.01 * theirs


def test_rates_that_made_the_data_are_found() -> None:
    random, (alpha, beta, gamma, _) = np.random.default_rng(0), (0.4, 0.1, 0.3, 1)
    spans = []
    for size in (1.0, 1000.0):
        level, trend, seasons, y = 10.0, 0.5, [3.0, 0.0, -3.0], []
        for t, e in enumerate(random.normal(size=1500)):
            y.append(level + trend + seasons[t] + e)
            level, trend, s = level + trend + alpha * e, trend + beta * e, seasons[t] + gamma * e
            seasons.append(s)
        spans.append(span(size * np.array(y)))
    (found,) = fit([Form("additive", "additive")], prepare(spans, 3, [Form("additive", "additive")]))
    assert found.rates[:3] == pytest.approx((alpha, beta, gamma), abs=0.05)
    assert found.rates.phi == 1.0


def test_series_count_alike_whatever_their_units() -> None:
    a, b = series(80, 4, 0), series(80, 4, 1)
    form = Form("damped", "additive")
    (one,), (other,) = (fit([form], prepare([span(a), span(size * b)], 4, [form])) for size in (1.0, 1e4))
    assert one.rates == pytest.approx(other.rates, abs=1e-3)


def test_rates_stay_in_their_region() -> None:
    u = np.random.default_rng(0).random((50, 4))
    alpha, beta, gamma, phi = rates_of(u, Form("damped", "additive")).T
    assert (beta <= alpha).all()
    assert (gamma <= 1 - alpha).all()
    assert ((phi >= 0.8) & (phi <= 0.98)).all()
    assert rates_of(u, Form("none", "none"))[:, 1:].tolist() == [[0.0, 0.0, 1.0]] * 50


def test_the_form_is_chosen_by_aicc() -> None:
    random, t = np.random.default_rng(0), np.arange(160)
    season = np.tile([5.0, -2.0, -3.0, 0.0], 40)
    cases = {
        ("none", "none"): 30 + random.normal(size=160),
        ("none", "additive"): 30 + season + random.normal(size=160),
        ("additive", "additive"): 30 + 2 * t + season + random.normal(size=160),
        ("additive", "multiplicative"): (30 + 2 * t) * (1 + season / 20) + random.normal(size=160),
    }
    for form, y in cases.items():
        layer = FittedSmoothing(3, 4, forms_of("auto", "auto", 4))
        chosen = layer.solve([span(y)])
        assert (chosen["trend"], chosen["seasonal"]) == form == tuple(layer.form)
        assert {name: chosen[name] for name in Rates._fields if name in chosen} == {
            name: pytest.approx(float(rate), abs=1e-4)
            for name, rate, free in zip(Rates._fields, layer.rates, layer.form.free)
            if free
        }


def test_aicc_counts_rates_and_the_variance() -> None:
    found = smoothing_fit.Fit(Form("damped", "none"), RATES, 50.0)
    assert aicc(found, 25) == pytest.approx(25 * np.log(2) + 8 + 2 * 4 * 5 / 20)


def test_or_by_held_out_forecasts() -> None:
    random, t = np.random.default_rng(0), np.arange(120)
    y = np.where(t < 80, 3.0 * t, 240.0) + random.normal(size=120)  # the trend ends with the training data
    layer = FittedSmoothing(12, 1, forms_of("auto", "auto", 1))
    assert layer.solve([span(y[:80])])["trend"] != "none"
    assert layer.solve([span(y[:80])], [span(y, first=84)])["trend"] == "none"
    assert layer.solve([span(y[:80])], [span(y[:86], first=84)])["trend"] != "none"  # no whole horizon


def test_given_forms_are_not_chosen() -> None:
    layer = FittedSmoothing(3, 4, [Form("none", "additive")])
    assert set(layer.solve([span(series(60, 4))])) == {"alpha", "gamma"}
    assert forms_of("auto", "auto", 1) == [Form(trend, "none") for trend in ("none", "additive", "damped")]


def test_what_cannot_be_fitted_is_told() -> None:
    layer = FittedSmoothing(3, 12, [Form("none", "additive")])
    with pytest.raises(DataError, match=r"a season of 12 needs at least 25 steps .* the longest series has 24"):
        layer.solve([span(np.ones(24)), span(np.ones(9))])
    with pytest.raises(DataError, match="needs values above 0"):
        FittedSmoothing(3, 4, [Form("none", "multiplicative")]).solve([span(np.arange(40.0))])
    seen = np.arange(40) > 50
    with pytest.raises(DataError, match="no training series is long enough"):
        layer.solve([span(np.ones(40), seen)])


def test_values_of_no_use_leave_multiplicative_forms_out() -> None:
    layer = FittedSmoothing(3, 4, forms_of("none", "auto", 4))
    y = series(60, 4) - 60
    assert layer.solve([span(y)])["seasonal"] != "multiplicative"


@pytest.mark.parametrize("seasonal", ["none", "additive", "multiplicative"])
def test_a_constant_is_continued(seasonal: str) -> None:
    layer = FittedSmoothing(3, 4, [Form("additive", seasonal)]).double()
    layer.solve([span(np.full(40, 7.0))])
    np.testing.assert_allclose(forecasts(layer, np.full(40, 7.0)), 7.0)
    assert bool(torch.isfinite(layer.rates).all())


def test_long_data_is_fitted_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoothing_fit, "LONGEST", (30, 20))
    monkeypatch.setattr(smoothing_fit, "MOST", 60)
    form = Form("none", "none")
    data = prepare([span(np.arange(100.0) + 1000 * i) for i in range(4)], 1, [form])
    assert data.y.shape == (2, 26)
    assert data.y[:, -1].tolist() == [99.0, 2099.0]
    seen = np.arange(100) % 10 > 0
    assert prepare([span(np.arange(100.0), seen)], 1, [form]).y.shape == (1, 15)
