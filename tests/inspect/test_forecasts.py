"""Forecasts looked into: sums that add up to them, and what each step of the past and each covariate contributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import unrolled
from unrolled.core import discover
from unrolled.core.errors import UsageError
from unrolled.runs.run import Run

N, H = 120, 5
RANDOM = np.random.default_rng(0)
NOISE, SALE, HEAT = RANDOM.normal(size=N), (np.arange(N) // 4) % 2, RANDOM.normal(size=N)
LINE = 30 + 0.05 * np.arange(N) + 4 * np.sin(np.arange(N) * np.pi / 3) + 0.3 * NOISE
ROWS = [
    {"step": t, "value": float(LINE[t] + 6 * SALE[t]), "sale": int(SALE[t]), "heat": float(HEAT[t])} for t in range(N)
]
QUICK = {"steps": 60, "warmup": 1, "batch_size": 8, "evaluate_tokens": 40, "d_state": 6, "lr": 0.02, "lookback": 12}


@pytest.fixture(scope="module")
def forecast(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """`forecast("ets", seasonal="additive")`: a run on one line, or with a covariate on rows; made once."""
    folder, made = tmp_path_factory.mktemp("forecasts"), {}

    def run(model: str, **own: Any) -> Run:
        key = f"{model}-{len(made)}"
        found = next((run for name, settings, run in made.values() if (name, settings) == (model, own)), None)
        if found is None:
            settings = {"horizon": H, "season": 6, "threads": 1, **own}
            data = ROWS if "future" in own else LINE
            found = unrolled.train(data, "forecast", model, folder / key, settings=settings, baselines={})
            made[key] = model, own, found
        return found

    return run


LINEAR = [("linear-map", {"lags": 9}), ("linear-map", {"lags": 9, "form": "d-linear"}), ("naive", {"method": "drift"}),
          ("ar", {"order": 7})]  # fmt: skip


@pytest.mark.parametrize(("model", "own"), LINEAR)
def test_what_past_values_add_adds_up_to_the_forecast(forecast: Any, model: str, own: dict[str, Any]) -> None:
    run = forecast(model, **own)
    answer = run.inspect("decomposition")
    whole = answer.arrays["constant"] + answer.arrays["contributions"].sum(1)
    assert np.allclose(whole, answer.arrays["forecast"], rtol=1e-6)
    (told,) = run.do("forecast", None)
    assert np.allclose(whole, told["forecast"], rtol=1e-4)  # what the run forecasts itself
    assert answer.numbers["largest"]


@pytest.mark.parametrize("seasonal", ["additive", "multiplicative"])
def test_level_trend_and_season_add_up_to_the_forecast(forecast: Any, seasonal: str) -> None:
    run = forecast("ets", seasonal=seasonal, trend="additive")
    answer = run.inspect("decomposition")
    parts = [answer.arrays[name].numpy() for name in ("level", "trend", "season")]
    (told,) = run.do("forecast", None)
    assert np.allclose(sum(parts), told["forecast"], rtol=1e-4)
    assert np.allclose(parts[0], parts[0][0])
    assert np.allclose(np.diff(parts[1], 2), 0, atol=1e-6)  # a straight line
    assert np.ptp(parts[2]) > 4  # the sine


def test_a_model_that_is_not_linear_is_refused(forecast: Any) -> None:
    run = forecast("gru", **QUICK)
    assert "not linear" in str(discover.question("decomposition").applies(run))
    with pytest.raises(UsageError, match="does not apply"):
        run.inspect("decomposition")
    with pytest.raises(UsageError, match="step = 9"):
        forecast(*LINEAR[0][:1], **LINEAR[0][1]).inspect("decomposition", settings={"step": 9})


def test_attributions_of_a_linear_model_are_what_its_values_add(forecast: Any) -> None:
    """Two ways to the same numbers; one in standard deviations, the other in units of the data."""
    run = forecast("linear-map", lags=9)
    adds = run.inspect("decomposition").arrays["contributions"][-1]
    found = run.inspect("saliency").arrays["integrated_gradients"]
    scale = next(iter(run.task.codec.scales.values())).scale[0]
    assert np.allclose(scale * found[-9:], adds[-9:], atol=1e-5)
    assert float(found[:-9].abs().max()) < 1e-9


def test_covariates_are_weighed_beside_values(forecast: Any) -> None:
    run = forecast("gru", future="sale", past="heat", target="value", **QUICK)
    answer = run.inspect("saliency")
    assert set(answer.numbers["columns"]) == {"value", "sale", "heat"}
    assert sum(answer.numbers["columns"].values()) == pytest.approx(
        float(answer.arrays["integrated_gradients"].sum()), rel=1e-6
    )
    assert abs(answer.numbers["columns"]["sale"]) > 2 * abs(answer.numbers["columns"]["heat"])  # which is noise
    assert "By input: " in answer.reading and answer.pictures[0].title.endswith("by input")


def test_the_window_of_an_encoder_decoder_is_explained(forecast: Any) -> None:
    run = forecast("seq2seq", **{**QUICK, "steps": 2})
    answer = run.inspect("saliency")
    assert len(answer.arrays["integrated_gradients"]) == 12  # the steps of the window, not those that are written
    assert answer.numbers["integrated_gradients"][0]["name"].startswith("t")
    assert "1 step ahead" in answer.reading
