"""Autoregressive forecasts: the recursion by hand, orders and weights against statsmodels, missing values."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from statsmodels.tsa.api import VAR
from statsmodels.tsa.ar_model import AutoReg, ar_select_order

from unrolled.core.errors import DataError
from unrolled.layers.counting import autoregression
from unrolled.layers.counting.autoregression import least_squares
from unrolled.layers.counting.forecaster import Span
from unrolled.layers.counting.recursion import FittedRecursion, Recursion, left
from unrolled.testing import check_causal

Array = NDArray[np.float64]


def span(y: Array, seen: NDArray[np.bool_] | None = None) -> Span:
    y = y.reshape(len(y), -1)
    return Span(y, np.ones(y.shape, bool) if seen is None else seen.reshape(y.shape))


def oscillation(n: int, seed: int = 0) -> Array:
    """x_t = 1 + 1.2 x_{t-1} - 0.6 x_{t-2} + noise."""
    noise, x = np.random.default_rng(seed).normal(size=n + 100), [0.0, 0.0]
    for e in noise:
        x.append(1 + 1.2 * x[-1] - 0.6 * x[-2] + e)
    return np.array(x[-n:])


def vectors(n: int) -> Array:
    """Two channels, each of which follows the other."""
    noise, x = np.random.default_rng(1).normal(size=(n + 50, 2)), [np.zeros(2)] * 2
    for e in noise:
        x.append(np.array([0.5, -1]) + np.array([[0.4, 0.3], [-0.5, 0.2]]) @ x[-1] + np.array([0.4, 0.3]) * x[-2] + e)
    return np.array(x[-n:])


def fitted(y: Array, order: int, horizon: int = 5, **settings: object) -> FittedRecursion:
    D = 1 if y.ndim == 1 else y.shape[1]
    layer = FittedRecursion(D, horizon, order, settings.get("criterion"), settings.get("ridge", 0.0)).double()  # type: ignore[arg-type]
    layer.solve([span(y)])
    return layer


def forecasts(layer: Recursion, y: Array, seen: NDArray[np.bool_] | None = None) -> Array:
    """[T, H, D]"""
    y = y.reshape(len(y), -1)
    known = np.ones(y.shape) if seen is None else seen.reshape(y.shape)
    with torch.no_grad():
        found = layer(torch.from_numpy(np.concatenate([np.where(known > 0, y, 1e9), known], 1))[None])[0][0]
    return found.numpy().reshape(len(y), layer.horizon, -1)


def test_weights_and_forecasts_are_those_of_statsmodels() -> None:
    y = oscillation(300)
    theirs = AutoReg(y, lags=4).fit()
    layer = fitted(y, 4)
    np.testing.assert_allclose(layer.weight.detach().flatten().numpy()[::-1], theirs.params[1:], atol=1e-8)
    assert layer.bias.item() == pytest.approx(theirs.params[0], abs=1e-8)
    np.testing.assert_allclose(forecasts(layer, y)[-1, :, 0], theirs.forecast(5), atol=1e-8)


def test_several_channels_are_a_vector_autoregression() -> None:
    y = vectors(300)
    theirs = VAR(y).fit(2)
    layer = fitted(y, 2)
    np.testing.assert_allclose(layer.weight.detach().numpy()[:, ::-1].transpose(1, 0, 2), theirs.coefs, atol=1e-8)
    np.testing.assert_allclose(forecasts(layer, y)[-1], theirs.forecast(y, 5), atol=1e-8)


def test_weights_that_made_the_data_are_found_within_three_standard_errors() -> None:
    for seed in range(3):
        y = oscillation(500, seed)
        found = fitted(y, 2).weight.detach().flatten().numpy()[::-1]
        z = y - y.mean()
        C = np.array([[z[:-1] @ z[:-1], z[1:] @ z[:-1]]] * 2)
        C[1] = C[1, ::-1]
        error = np.sqrt(np.diag(np.linalg.inv(C)))  # of noise with variance 1
        assert (np.abs(found - [1.2, -0.6]) < 3 * error).all()
        assert (error < 0.05).all()


@pytest.mark.parametrize("criterion", ["aic", "bic"])
@pytest.mark.parametrize("seed", range(4))
def test_the_order_is_that_of_statsmodels(criterion: str, seed: int) -> None:
    y = oscillation(1500, seed)
    theirs = ar_select_order(y, maxlag=12, ic=criterion)
    layer = FittedRecursion(1, 3, 12, criterion, 0.0)  # type: ignore[arg-type]
    assert layer.solve([span(y)]) == {"order": max(theirs.ar_lags)}


def test_and_of_vectors() -> None:
    y = vectors(600)
    theirs = VAR(y).select_order(8)
    layer = FittedRecursion(2, 3, 8, "bic", 0.0)
    assert layer.solve([span(y)]) == {"order": theirs.bic} == {"order": 2}


def test_what_is_left_of_a_covariance() -> None:
    """After p lags it is the covariance of the errors of a regression on them."""
    y = vectors(80)
    windows = np.stack([y[t : t + 4] for t in range(77)])  # [N, S, D]
    z = windows - windows.mean(0)
    found = left(np.einsum("nsd,nre->sdre", z, z) / len(z))
    for p in range(4):
        x = z[:, 3 - p : 3].reshape(len(z), -1)
        e = z[:, 3] - (x @ np.linalg.lstsq(x, z[:, 3], rcond=None)[0] if p else 0)
        np.testing.assert_allclose(found[p], e.T @ e / len(z), rtol=1e-9)


def test_a_series_without_noise_takes_the_least_order() -> None:
    t = np.arange(400)
    layer = FittedRecursion(1, 60, 20, "aic", 0.0).double()
    assert layer.solve([span(np.sin(t / 5) + 3)])["order"] <= 3
    error = forecasts(layer, np.sin(t / 5) + 3)[-1, :, 0] - np.sin(np.arange(400, 460) / 5) - 3
    assert np.abs(error).max() < 1e-6


def test_fibonacci_is_continued_exactly() -> None:
    x = np.array([1.0, 1, 2, 3, 5, 8, 13, 21, 34, 55])
    layer = fitted(x, 3)
    np.testing.assert_allclose(layer.weight.detach().flatten(), [0, 1, 1], atol=1e-12)
    assert forecasts(layer, x)[-1, :, 0].round(6).tolist() == [89, 144, 233, 377, 610]


def test_a_channel_that_repeats_another_later_has_no_huge_weights() -> None:
    """Beside the other it varies by rounding alone; weights of 10^5 would blow up the rounding of each forecast."""
    y = 10 + 3 * np.sin(2 * np.pi * np.arange(151) / 7) + 0.3 * np.random.default_rng(0).normal(size=151)
    both = np.stack([y[1:], y[:-1]], 1)
    encoded = ((both - both.mean(0)) / both.std(0)).astype(np.float32).astype(np.float64)
    layer = fitted(encoded[:120], 12, horizon=7, criterion="aic")
    assert float(layer.weight.detach().abs().max()) < 2
    assert np.abs(forecasts(layer, encoded)[20:-1, 0] - encoded[21:]).mean() < 0.1


def test_missing_values_are_left_out_of_the_fit() -> None:
    y, seen = oscillation(200), np.ones(200, bool)
    seen[[20, 21, 90, 150]] = False
    rows = [t for t in range(3, 200) if seen[t - 3 : t + 1].all()]
    X = np.stack([np.append(y[t - 3 : t], 1.0) for t in rows])
    layer = FittedRecursion(1, 2, 3, None, 0.0).double()
    assert layer.solve([span(np.where(seen, y, 1e9), seen)]) == {}
    wanted = np.linalg.lstsq(X, y[rows], rcond=None)[0]
    found = np.append(layer.weight.detach().flatten(), layer.bias.detach())
    np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_and_held_where_nothing_else_is_left() -> None:
    y, seen = oscillation(90), np.arange(90) % 3 > 0
    layer = FittedRecursion(1, 2, 3, None, 0.0).double()
    assert layer.solve([span(y, seen)]) == {}
    np.testing.assert_allclose(layer.weight.detach(), fitted(np.where(seen, y, np.roll(y, 1))[1:], 3).weight.detach())


@pytest.mark.parametrize("width", [1, 2])
def test_a_missing_value_is_what_was_forecast(width: int) -> None:
    y = vectors(60)[:, :width]
    layer, seen = fitted(y, 3), np.ones(y.shape, bool)
    seen[30, 0] = seen[31] = seen[33] = False
    before, after = forecasts(layer, y), forecasts(layer, y, seen)
    filled = y.copy()
    for t in (30, 31, 33):
        filled[t] = np.where(seen[t], y[t], forecasts(layer, filled)[t - 1, 0])
    np.testing.assert_allclose(after, forecasts(layer, filled), rtol=1e-9)
    np.testing.assert_allclose(after[:30], before[:30])
    if width == 1:
        np.testing.assert_allclose(after[31, :3], before[29, 2:], rtol=1e-9)


def test_series_start_with_their_first_value_and_it_stands_before_them() -> None:
    layer = Recursion(1, 2, 3).double()
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[[100.0], [10.0], [1.0]]]))
    x = torch.tensor([[9.0, 0], [2, 1], [3, 1]]).double()[None]
    assert layer(x)[0][0, :, 0].tolist() == [0.0, 222.0, 223.0]
    y, state = layer(x[:, :1])
    assert torch.cat([y, layer(x[:, 1:], state)[0]], 1)[0, :, 0].tolist() == [0.0, 222.0, 223.0]


def test_the_layer_obeys_the_laws_with_missing_values() -> None:
    x = torch.randn(3, 9, 4)
    x[..., 2:] = (torch.rand(3, 9, 2) > 0.4).float()
    layer = Recursion(2, 3, 2)
    torch.nn.init.normal_(layer.weight, std=0.3)
    check_causal(layer, x)


def test_a_ridge_makes_weights_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """In both ways the minimum of the mean square and the penalty."""
    y, s, N = oscillation(200), 3, 197
    X = np.stack([y[t : t + s] for t in range(N)])
    z, target = X - X.mean(0), y[s:] - y[s:].mean()
    wanted = np.linalg.solve(z.T @ z + 0.1 * N * z.var(0).mean() * np.eye(s), z.T @ target)
    for small in (0, 1 << 30):
        monkeypatch.setattr(autoregression, "SMALL", small)
        W, b = least_squares([y[:, None]], 1, slice(0, 1), s, ridge=0.1)
        np.testing.assert_allclose(W.ravel(), wanted, atol=1e-10)
        assert b[0] == pytest.approx(y[s:].mean() - X.mean(0) @ wanted)
    assert fitted(y, s, ridge=0.1).weight.abs().sum() < fitted(y, s).weight.abs().sum()


def test_short_series_have_a_smaller_order() -> None:
    layer = FittedRecursion(1, 2, 16, None, 0.0)
    assert layer.solve([span(oscillation(12))]) == {"order": 5}  # 7 windows and 6 weights
    assert not layer.weight[:, :-5].any()
    many = FittedRecursion(1, 2, 4, None, 0.0)
    assert many.solve([span(oscillation(6, seed)) for seed in range(9)]) == {}
    with pytest.raises(DataError, match="at least 3 steps are needed, but the longest series has 2"):
        layer.solve([span(np.ones(2))])


def test_series_share_their_weights() -> None:
    parts = [oscillation(150, seed) for seed in range(3)]
    layer = FittedRecursion(1, 2, 2, None, 0.0).double()
    layer.solve([span(y) for y in parts])
    X = np.concatenate([[np.append(y[t - 2 : t], 1.0) for t in range(2, 150)] for y in parts])
    wanted = np.linalg.lstsq(X, np.concatenate([y[2:] for y in parts]), rcond=None)[0]
    np.testing.assert_allclose(np.append(layer.weight.detach(), layer.bias.detach()), wanted, atol=1e-9)
