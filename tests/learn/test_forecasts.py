"""Series whose structure is known are forecast by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unrolled

SMALL = {"threads": 1, "d_state": 16, "d_embedding": 16, "lr": 0.01, "batch_size": 16, "season": 1, "stride": 2,
         "distribution": "point", "evaluate_every": 500}  # fmt: skip


def error_of(data: Any, model: str, place: Path, **settings: Any) -> float:
    """The mean absolute error on the test span."""
    run = unrolled.train(data, "forecast", model, place, settings=settings, progress=None, baselines={})
    return float(run.result["test"]["mae"])


@pytest.mark.parametrize("model", ["linear-map", "ar"])
def test_a_sum_of_seasons_is_continued(model: str, tmp_path: Path) -> None:
    t = np.arange(300.0)
    x = 5 + 3 * np.sin(2 * np.pi * t / 7) + 2 * np.sin(2 * np.pi * t / 24 + 1) + np.sin(2 * np.pi * t / 30)
    settings = {"lags": 100} if model == "linear-map" else {}
    assert error_of(x, model, tmp_path / "run", horizon=24, season=1, **settings) < 0.02 * np.abs(x).mean()


def test_fibonacci_is_exact(tmp_path: Path) -> None:
    numbers = [1.0, 1.0]
    while len(numbers) < 44:
        numbers.append(numbers[-1] + numbers[-2])
    run = unrolled.train(
        np.array(numbers[:40]), "forecast", "ar", tmp_path / "run", horizon=4, season=1, settings={"order": 2}
    )
    np.testing.assert_allclose(run.do("forecast", None)[0]["forecast"], numbers[40:], rtol=1e-5)


def test_a_level_shift_that_a_covariate_announces_is_followed(tmp_path: Path) -> None:
    n, H = 300, 6
    offer = ((np.arange(n) // 20) % 2).astype(float)
    x = 4 * offer + 0.05 * np.random.default_rng(0).normal(size=n)
    both = [{"time": k, "offer": offer[k], "value": x[k]} for k in range(n)]
    settings = SMALL | {"horizon": H, "lookback": 12, "steps": 120, "series.time": "time", "target": "value"}
    known = error_of(both, "gru", tmp_path / "known", **settings, future="offer")
    unknown = error_of([{"time": r["time"], "value": r["value"]} for r in both], "gru", tmp_path / "no", **settings)
    assert known < 0.25
    assert known < unknown / 2


def test_gaps_as_an_input_halve_the_error_of_an_irregular_sine(tmp_path: Path) -> None:
    t = np.cumsum(np.random.default_rng(1).exponential(1.0, 400) + 0.05)
    x = np.sin(2 * np.pi * t / 6)
    rows = [{"time": int(1000 * s), "value": v} for s, v in zip(t.tolist(), x.tolist())]
    settings = SMALL | {"horizon": 1, "lookback": 12, "steps": 250}
    timed = {"spacing": "irregular", "series.time": "time", "target": "value"}
    known = error_of(rows, "gru", tmp_path / "known", **settings, **timed)
    assert known < error_of(x, "gru", tmp_path / "no", **settings) / 2
