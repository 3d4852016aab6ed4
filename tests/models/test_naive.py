"""Naive forecasts by their definitions, at every position and with missing values."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unrolled.core import discover
from unrolled.core.spec import Sizes


def forecasts(
    y: list[float], seen: list[int] | None = None, *, horizon: int = 2, **settings: object
) -> list[list[float]]:
    spec = discover.model("naive")
    columns = [y] if seen is None else [y, [float(each) for each in seen]]
    body = spec.make(
        spec.config.parse(settings), Sizes(len(columns), horizon, horizon=horizon, d_step=1, observed=seen is not None)
    )
    assert body.solve([np.array(columns).T]) == {}
    found: list[list[float]] = body(torch.tensor(columns).T[None])[0][0].tolist()
    return found


def test_the_last_value() -> None:
    assert forecasts([3.0, 1.0, 4.0]) == [[3.0, 3.0], [1.0, 1.0], [4.0, 4.0]]
    assert forecasts([9.0, 3.0, 9.0], [0, 1, 0]) == [[0.0, 0.0], [3.0, 3.0], [3.0, 3.0]]


def test_the_last_season() -> None:
    found = forecasts([1.0, 2.0, 3.0, 4.0], horizon=4, method="seasonal", season=3)
    assert found == [[1.0] * 4, [2.0] * 4, [1.0, 2.0, 3.0, 1.0], [2.0, 3.0, 4.0, 2.0]]
    assert forecasts([1.0, 2.0, 0.0, 0.0, 5.0], [1, 1, 0, 1, 1], method="seasonal")[2] == [2.0, 2.0]  # a season of 1


def test_the_season_of_the_data() -> None:
    spec = discover.model("naive")
    body = spec.make(spec.config(method="seasonal"), Sizes(1, 1, d_step=1, season=3))
    assert body(torch.tensor([5.0, 6, 7, 8])[None, :, None])[0].flatten().tolist() == [5, 6, 5, 6]
    assert spec.make(spec.config(), Sizes(1, 1, d_step=1, season=3)).layer.season == 1


def test_a_line_through_the_first_and_the_last_value() -> None:
    assert forecasts([1.0, 3.0, 0.0], method="drift") == [[1.0, 1.0], [5.0, 7.0], [-0.5, -1.0]]
    found = forecasts([7.0, 1.0, 8.0, 5.0, 8.0, 8.0], [0, 1, 0, 1, 0, 0], method="drift")
    assert found == [[0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [7.0, 9.0], [9.0, 11.0], [11.0, 13.0]]


def test_the_mean_of_all_so_far() -> None:
    assert forecasts([1.0, 3.0, 8.0], method="mean") == [[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]]
    assert forecasts([9.0, 3.0, 9.0, 5.0], [0, 1, 0, 1], method="mean")[1:] == [[3.0, 3.0], [3.0, 3.0], [4.0, 4.0]]


@pytest.mark.parametrize("method", ["last", "seasonal", "drift", "mean"])
def test_they_do_not_care_about_units(method: str) -> None:
    y = np.random.default_rng(0).normal(size=20)
    plain = forecasts(y.tolist(), method=method, season=3)
    other = forecasts((100 + 7 * y).tolist(), method=method, season=3)
    np.testing.assert_allclose(other, 100 + 7 * np.array(plain), rtol=1e-5)


def test_a_long_mean_keeps_its_digits() -> None:
    spec, state = discover.model("naive"), None
    body = spec.make(spec.config.parse({"method": "mean"}), Sizes(1, 1, d_step=1))
    x = 1000 + torch.randn(1, 40_000, 1, generator=torch.Generator().manual_seed(0))
    for piece in x.split(20, 1):
        y, state = body(piece, state)
    assert float(y[0, -1, 0]) == pytest.approx(float(x.double().mean()), abs=1e-4)
