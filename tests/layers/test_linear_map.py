"""The linear map: its windows, and its fit against ridge regression on the windows themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.layers.counting import linear_map
from unrolled.layers.counting.forecaster import Span
from unrolled.layers.counting.linear_map import RidgeMap, WindowMap, held, longest
from unrolled.testing import check_causal

Array = NDArray[np.float64]
FORMS = ("linear", "n-linear", "d-linear")


def span(y: Array, first: int = 0) -> Span:
    return Span(y, np.ones(y.shape, bool), first)


def series(*lengths: int, width: int = 1) -> list[Array]:
    random = np.random.default_rng(0)
    return [5 + np.cumsum(random.normal(size=(n, width)), axis=0) * 0.3 for n in lengths]


def cut(data: list[Array], L: int, H: int) -> tuple[Array, Array]:
    """Windows x [N, L, D] and targets [N, H, D]."""
    windows = np.array([z[t : t + L + H] for z in data for t in range(len(z) - L - H + 1)])
    return windows[:, :L], windows[:, L:]


def features(form: str, x: Array) -> tuple[Array, Array]:
    """f [N, P, D], and what is added [N, 1, D]."""
    last = x[:, -1:]
    if form == "n-linear":
        return x[:, :-1] - last, last
    if form == "d-linear":
        whole = np.concatenate([np.repeat(x[:, :1], 12, 1), x, np.repeat(last, 12, 1)], 1)
        average = np.stack([whole[:, i : i + 25].mean(1) for i in range(x.shape[1])], 1)
        return np.concatenate([average, x - average], 1), 0 * last
    return x, 0 * last


def ridge(form: str, x: Array, y: Array, strength: float) -> tuple[Array, Array]:
    """What a ridge on the windows predicts for them [N, H, D], and the effective number of parameters."""
    f, added = features(form, x)
    f, y = f.reshape(len(f), -1), (y - added).reshape(len(y), -1)
    f0, y0 = f - f.mean(0), y - y.mean(0)
    penalty = strength * f0.var(0).mean() * len(f) * np.eye(f.shape[1])
    hat = f0 @ np.linalg.solve(f0.T @ f0 + penalty, f0.T)
    return (hat @ y0 + y.mean(0)).reshape(len(x), -1, x.shape[2]) + added, 1 + np.trace(hat)


def predicted(layer: WindowMap, z: Array, first: int = 0) -> Array:
    """Forecasts [n, H, D] made from step first - 1 on, of whole horizons."""
    x = torch.from_numpy(np.concatenate([z, np.ones_like(z)], 1))[None]
    y = layer.double()(x)[0][0].detach().numpy().reshape(len(z), -1, z.shape[1])
    found: Array = y[max(first - 1, 0) : len(z) - layer.horizon]
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("width", [1, 2])
def test_it_is_a_ridge_on_all_windows(form: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_map, "STRENGTHS", (0.02,))
    data, L, H = series(60, 45, 9, 12, width=width), 6, 4
    layer = RidgeMap(width, H, (L,), (form,)).double()
    assert layer.solve([span(z) for z in data]) == {"ridge": 0.02}
    x, y = cut(data, L, H)
    wanted, _ = ridge(form, x, y, 0.02)
    whole = [z for z in data if len(z) >= L + H]
    found = np.concatenate([predicted(layer, z, L) for z in whole])
    np.testing.assert_allclose(found, wanted, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_the_strength_is_chosen_on_held_out_windows(form: str) -> None:
    train, other = series(80, 300)
    L, H = 8, 3
    layer = RidgeMap(1, H, (L,), (form,)).double()
    errors = {}
    for strength in linear_map.STRENGTHS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(linear_map, "STRENGTHS", (strength,))
            layer.solve([span(train)])
        _, wanted = cut([other[40 - L :]], L, H)
        errors[strength] = float(((predicted(layer, other, 40) - wanted) ** 2).mean())
    chosen = layer.solve([span(train)], [span(other, 40)])
    assert chosen == {"ridge": min(errors, key=errors.__getitem__)}


def test_without_held_out_data_by_generalised_cross_validation() -> None:
    (train,), L, H = series(60), 12, 3
    layer = RidgeMap(1, H, (L,), ("linear",)).double()
    x, y = cut([train], L, H)
    scores = {}
    for strength in linear_map.STRENGTHS:
        said, p = ridge("linear", x, y, strength)
        scores[strength] = float(((said - y) ** 2).mean()) / (1 - p / len(x)) ** 2
    assert layer.solve([span(train)]) == {"ridge": min(scores, key=scores.__getitem__)}
    assert layer.solve([span(train)], [span(train[:5], 3)]) == layer.solve([span(train)])  # too short for a horizon


def test_the_form_is_chosen_too() -> None:
    random = np.random.default_rng(1)
    walk = np.cumsum(random.normal(size=(400, 1)), axis=0)
    noise = random.normal(size=(400, 1))
    walking, still = RidgeMap(1, 4, (6,), FORMS), RidgeMap(1, 4, (6,), FORMS)
    assert walking.solve([span(walk[:60])], [span(walk + 30, 60)])["form"] == "n-linear"
    assert still.solve([span(noise[:200])], [span(noise, 200)])["form"] != "n-linear"


def test_held_out_windows_reach_back_to_the_first_value() -> None:
    """With fewer than L values before it, the first one is repeated, as the layer does."""
    train, other = series(80, 30)
    layer = RidgeMap(1, 3, (8,), ("linear",)).double()
    z = linear_map._reaching(span(other, 2), 8)
    assert z[:7, 0].tolist() == [other[0, 0]] * 7
    assert len(z) == 30 + 6
    layer.solve([span(train)])
    _, wanted = cut([z], 8, 3)
    assert predicted(layer, other, 2).shape == wanted.shape


def test_sums_of_seasons_are_continued() -> None:
    t = np.arange(400.0)
    z = (np.sin(t / 3) + 0.5 * np.cos(t / 7.1) + 2)[:, None]
    layer = RidgeMap(1, 40, (48,), ("n-linear",)).double()
    layer.solve([span(z[:300])])
    error = predicted(layer, z, 340)[0, :, 0] - z[340:380, 0]
    assert np.abs(error).max() < 0.02


def test_windows_begin_with_the_first_value_and_hold_what_is_missing() -> None:
    layer = WindowMap(1, 1, 3).double()
    layer.set_map(np.array([[[[100.0], [10.0], [1.0]]]]), np.array([[0.5]]))
    x = torch.tensor([[9.0, 0], [2, 1], [3, 1], [9, 0], [5, 1]]).double()[None]
    assert layer(x)[0].flatten().tolist() == [0.0, 222.5, 223.5, 233.5, 335.5]
    y, state = layer(x[:, :2])
    assert torch.cat([y, layer(x[:, 2:], state)[0]], 1).flatten().tolist() == [0.0, 222.5, 223.5, 233.5, 335.5]


def test_of_several_values_those_not_seen_yet_are_zero() -> None:
    layer = WindowMap(2, 1, 2).double()
    W = np.zeros((1, 2, 2, 2))
    W[0, 0] = [[1000.0, 100.0], [10.0, 1.0]]
    layer.set_map(W, np.zeros((1, 2)))
    x = torch.tensor([[1.0, 9, 1, 0], [2, 9, 1, 0], [3, 4, 1, 1]]).double()[None]
    assert layer(x)[0][0, :, 0].tolist() == [1010.0, 1020.0, 2034.0]


def test_the_layer_obeys_the_laws() -> None:
    check_causal(WindowMap(2, 3, 4))
    check_causal(WindowMap(1, 2, 1))


def test_before_it_is_fitted_the_last_value_is_repeated() -> None:
    layer = WindowMap(2, 2, 3)
    x = torch.tensor([[1.0, 2, 1, 1], [3, 4, 1, 1]])[None]
    assert layer(x)[0][0].tolist() == [[1.0, 2, 1, 2], [3, 4, 3, 4]]


def test_short_series_are_read_less_far_back() -> None:
    assert longest([100], 336, 12) == 44  # 100 - 44 - 12 + 1 = 45 windows
    assert longest([100] * 200, 336, 12) == 88
    assert longest([100], 8, 12) == 8
    layer = RidgeMap(1, 12, (336,), ("n-linear",))
    chosen = layer.solve([span(series(100)[0])])
    assert chosen["length"] == 44
    assert not layer.weight[:, :-44].any()
    with pytest.raises(DataError, match="the longest has 12 steps and at least 13 are needed"):
        layer.solve([span(series(12)[0])])


def test_a_constant_is_continued() -> None:
    layer = RidgeMap(1, 3, (4,), ("n-linear",)).double()
    layer.solve([span(np.full((40, 1), 7.25))])
    np.testing.assert_allclose(predicted(layer, np.full((9, 1), 7.25)), 7.25, rtol=1e-12)


def test_missing_values_are_held_in_training() -> None:
    y, seen = np.array([[9.0], [2], [9], [4]]), np.array([[False], [True], [False], [True]])
    assert held(Span(y, seen)).tolist() == [[2.0], [2.0], [4.0]]
    assert len(held(Span(y, ~seen & seen))) == 0


def test_the_number_of_lags_is_chosen_too() -> None:
    """Few where there is little data, more than a season has steps where one repeats itself on a moving level."""
    random, t = np.random.default_rng(2), np.arange(420)
    season = (3 * random.normal(size=12))[t % 12] + np.cumsum(0.3 * random.normal(size=420))
    for z, n, wanted in ((season[:, None], 300, {24, 13}), (np.cumsum(random.normal(size=(90, 1)), 0), 60, {3})):
        best = RidgeMap(1, 6, (12, 24, 3, 13), ("n-linear",)).double()
        chosen = best.solve([span(z[:n])], [span(z, n)])
        L = chosen.get("length", 24)
        assert L in wanted
        alone = RidgeMap(1, 6, (L,), ("n-linear",)).double()
        alone.solve([span(z[:n])], [span(z, n)])
        near = 1e-9 if n == 60 else 0.1  # where most windows are those of more lags, theirs are taken
        np.testing.assert_allclose(predicted(best, z, n), predicted(alone, z, n), atol=near)
