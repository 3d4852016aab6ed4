"""What comes later changes nothing before it: no scale, season, statistic, window or forecast of any kind of model."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import unrolled
from unrolled.core.errors import DataError
from unrolled.data.config import DataConfig
from unrolled.data.prepared import Prepared
from unrolled.data.time_series.prepare import FIRST, LAST, encode_histories, prepare_series
from unrolled.data.time_series.reading import SeriesReading
from unrolled.data.time_series.spans import Asked
from unrolled.data.time_series.windows import Cutter, Spots, origins
from unrolled.runs.run import Run

N, H, CUT = 90, 4, 70  # steps of a series, the horizon, and the step at which training and validation end
BEGIN = datetime(2024, 1, 1)
BESIDE = {"id": "shop", "past": "heat", "future": "sale", "static": "size", "calendar": "hour", "target": "value"}
ASKED = Asked(H, 12, None, "none", "standard", None, N - CUT, None)
Rows = list[dict[str, Any]]


def world(gaps: bool = True, late: int | None = None) -> Rows:
    """Two shops with covariates; `late` is the step at which a third one opens."""
    random, found = np.random.default_rng(0), []
    for shop, first in (("a", 0), ("b", 7), *([("c", late)] if late else [])):
        for t in range(first, N):
            value = 5 * np.sin(t / 4) + random.normal() + 20 * (shop == "b")
            heat, sale = random.normal(), int(random.random() < 0.3)
            gone = gaps and t % 17 == 5
            found.append({"time": BEGIN + timedelta(hours=t), "shop": shop, "value": None if gone else float(value),
                          "heat": heat, "sale": sale, "size": {"a": 1.0, "b": 2.5, "c": 900.0}[shop]})  # fmt: skip
    return found


def changed(rows: Rows, step: int, by: float) -> Rows:
    """All numbers of the steps from one on are others, but for what is known of the future."""
    begin = BEGIN + timedelta(hours=step)
    return [
        {**row, "value": None if row["value"] is None else by - 3 * row["value"], "heat": row["heat"] + by}
        if row["time"] >= begin
        else row
        for row in rows
    ]


def prepared(rows: Rows, **own: Any) -> Prepared:
    return prepare_series(rows, SeriesReading.parse(BESIDE), replace(ASKED, **own), DataConfig())


def assert_same_windows(one: Prepared, two: Prepared, split: str, ends: int = N) -> None:
    """Inputs and targets of all windows whose targets lie before a step."""
    for codec in (one.codecs["series"], two.codecs["series"]):
        assert codec == one.codecs["series"]
    spots = [origins(each.sections[split], each.codecs["series"]) for each in (one, two)]
    kept = spots[0].ends + H <= ends
    assert kept.any() and (spots[0].ends == spots[1].ends).all()
    some = Spots(spots[0].series[kept], spots[0].ends[kept])
    a, b = (Cutter(each.sections[split], each.codecs["series"], True).batch(some) for each in (one, two))
    assert a.x.equal(b.x) and a.targets["target"].equal(b.targets["target"])
    assert a.target_masks["target"].equal(b.target_masks["target"])


@settings(max_examples=8, deadline=None)
@given(st.integers(CUT, N - 1), st.sampled_from([1e3, -7.0]), st.booleans())
def test_what_is_fitted_knows_nothing_of_the_test_span(step: int, by: float, gaps: bool) -> None:
    """Scales, the season, the look-back, statistics of covariates, and the windows of training and validation."""
    before = prepared(world(gaps), lookback=None, horizon=None)
    after = prepared(changed(world(gaps), step, by), lookback=None, horizon=None)
    assert before.codecs["series"].to_json() == after.codecs["series"].to_json()
    before, after = prepared(world(gaps)), prepared(changed(world(gaps), step, by))
    for split in ("train", "valid"):
        assert_same_windows(before, after, split)


def test_training_knows_nothing_of_the_validation_span() -> None:
    before = prepared(world())
    first = int(np.asarray(before.sections["valid"].columns[FIRST])[0])
    after = prepared(changed(world(), first, 1e3))
    assert before.codecs["series"].to_json() == after.codecs["series"].to_json()
    assert_same_windows(before, after, "train")


@pytest.mark.parametrize(("late", "split"), [(66, "valid"), (75, "test")])
def test_a_series_that_begins_later_is_scaled_by_what_is_before_its_first_forecast(late: int, split: str) -> None:
    found = prepared(world(late=late))
    section = found.sections[split]
    assert np.asarray(section.columns[FIRST])[2] == np.asarray(section.columns[LAST])[2]  # nothing is judged there
    assert dict(found.codecs["series"].static)["size"][0] == pytest.approx(1.75)  # of the two that are trained on
    assert any("begins after the training span" in note for note in found.facts["notes"])
    if split == "valid":  # and then by its validation span
        other = prepared(changed(world(late=late), CUT, 1e3))
        assert other.codecs["series"].scales["c"] == found.codecs["series"].scales["c"]
        assert np.asarray(found.sections["test"].columns[FIRST])[2] == CUT - late


KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "closed form": ("linear-map", {"lags": 6}),
    "smoothing": ("ets", {}),
    "direct": ("gru", {"d_state": 3, "past": "heat"}),
    "window": ("bigru", {"d_state": 3, "past": "heat", "relative": "window"}),
    "rollout": ("gru", {"d_state": 3, "by": "rollout", "samples": 3, "distribution": "gaussian"}),
    "sequence": ("seq2seq", {"d_state": 3, "samples": 3, "distribution": "gaussian"}),
}
QUICK = {"horizon": H, "lookback": 12, "test_steps": N - CUT, "threads": 1, "series.time": "time", "season": 6,
         **{key: value for key, value in BESIDE.items() if key != "past"}}  # fmt: skip
TRAINED = {"steps": 2, "warmup": 1, "batch_size": 8, "evaluate_tokens": 40}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made: dict[str, Run] = {}

    def run(kind: str) -> Run:
        if kind not in made:
            model, own = KINDS[kind]
            both = QUICK | own | (TRAINED if "d_state" in own else {})
            out = tmp_path_factory.mktemp("leaks") / model
            made[kind] = unrolled.train(world(), "forecast", model, out, settings=both, baselines={})
        return made[kind]

    return run


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(step=st.integers(CUT, N - 1), by=st.sampled_from([1e3, -7.0]))
def test_no_forecast_knows_what_comes_after_it(trained: Any, kind: str, step: int, by: float) -> None:
    task, model = trained(kind).task, trained(kind).model
    found = []
    for rows in (world(), changed(world(), step, by)):
        task.prepare(rows)
        section = task.prepared.sections["test"]
        first = np.array([0, 7])  # at which step of time the two series begin
        spots = Spots(np.array([0, 1, 0, 1]), np.concatenate([step - first, CUT - first]))
        found.append({i: y for rows, ys in task.forecasts(model, section, spots) for i, y in zip(rows.tolist(), ys)})
        found[-1]["valid"] = task.evaluate(model, "valid")
    assert set(found[0]) == {0, 1, 2, 3, "valid"}
    assert all(found[0][i].equal(found[1][i]) for i in range(4))
    assert found[0]["valid"] == found[1]["valid"]


def test_evaluating_other_data_scales_new_series_by_what_comes_first(trained: Any) -> None:
    """The forecasts of a series that the run does not know are the same, whatever its later values are."""
    task = trained("closed form").task
    rows = [{**row, "shop": "new"} for row in world() if row["shop"] == "a"]
    both = (rows, changed(rows, 20, 1e6))
    one, two = (encode_histories(some, task.reading, task.codec, judged=True)[0][1] for some in both)
    assert np.array_equal(one.scale, two.scale) and np.array_equal(one.values[:20], two.values[:20], equal_nan=True)
    last = [encode_histories(some, task.reading, task.codec)[0][1].scale for some in both]
    assert not np.array_equal(*last)  # what is forecast from the end may know all of it


def test_a_gap_that_a_run_has_no_input_for_is_told(tmp_path: Path) -> None:
    """Missing values are never filled in without a word."""
    whole = [{"time": row["time"], "value": row["value"]} for row in world(gaps=False) if row["shop"] == "a"]
    run = unrolled.train(whole, "forecast", "naive", tmp_path / "run", horizon=H, baselines={})
    whole[40]["value"] = None
    with pytest.raises(DataError, match=r"row 41, column 'time'.*2024-01-02 16:00:00 is missing"):
        run.do("forecast", whole)
