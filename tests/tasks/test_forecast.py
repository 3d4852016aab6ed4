"""Forecasts: what is read, what is held out, what is predicted, and that nothing of the future is known."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unrolled
from tests.thorough import every
from unrolled.core import discover
from unrolled.core.errors import DataError, UsageError
from unrolled.core.ledger import Ledger
from unrolled.data.config import DataConfig
from unrolled.data.time_series.prepare import LAST, SCALE, prepare_series
from unrolled.data.time_series.reading import SeriesReading
from unrolled.data.time_series.spans import Asked
from unrolled.objectives.forecasts import LEVELS, Residuals, tail
from unrolled.runs.run import Run

QUICK = {"threads": 1, "evaluate_every": 20, "evaluate_tokens": 200, "warmup": 1, "lr": 0.01, "d_state": 8,
         "d_embedding": 8, "batch_size": 8}  # fmt: skip
NOTHING = Asked(None, None, None, "none", "standard", None, None, None)


def hours(n: int = 200, seed: int = 0) -> np.ndarray:
    t = np.arange(n)
    return 5 + np.sin(2 * np.pi * t / 12) + 0.05 * np.random.default_rng(seed).normal(size=n)


def rows(values: np.ndarray, first: str = "2024-01-01") -> list[dict[str, Any]]:
    stamps = np.datetime64(first, "h") + np.arange(len(values))
    return [{"time": str(s).replace("T", " ") + ":00", "value": float(v)} for s, v in zip(stamps, values)]


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory) -> Run:
    place = tmp_path_factory.mktemp("runs") / "linear"
    return unrolled.train(rows(hours()), "forecast", "linear-map", place, horizon=6, settings={"lags": 24})


@pytest.fixture(scope="module")
def gru(tmp_path_factory: pytest.TempPathFactory) -> Run:
    place = tmp_path_factory.mktemp("runs") / "gru"
    settings = {**QUICK, "steps": 40, "horizon": 4, "lookback": 24}
    return unrolled.train(rows(hours()), "forecast", "gru", place, settings=settings)


# ---- what is measured


def test_figures_of_the_last_value_are_those_of_the_equations(linear: Run) -> None:
    """MAE, RMSE, MASE and sMAPE over all forecasts that lie inside of the test span, by hand."""
    x, H = hours(), 6
    facts = json.loads((linear.path / "data.json").read_text())["facts"]
    begin = len(x) - facts["split"]["test"]["steps"]
    ends = range(begin, len(x) - H + 1)
    errors = np.array([x[e - 1] - x[e : e + H] for e in ends])
    train = x[: facts["split"]["train"]["steps"]]
    naive = np.abs(train[facts["season"] :] - train[: -facts["season"]]).mean()
    found = linear.result["baselines"]["last value"]["test"]
    truth = np.array([x[e : e + H] for e in ends])
    assert found["tokens"] == errors.size
    assert found["mae"] == pytest.approx(np.abs(errors).mean(), rel=1e-5)
    assert found["rmse"] == pytest.approx(math.sqrt((errors**2).mean()), rel=1e-5)
    assert found["mase"] == pytest.approx(np.abs(errors).mean() / naive, rel=1e-5)
    assert found["smape"] == pytest.approx(100 * (2 * np.abs(errors) / (2 * truth + errors)).mean(), rel=1e-5)


def test_forecasts_that_overlap_are_no_independent_evidence(linear: Run) -> None:
    """For intervals and tests those that begin within one horizon are one unit; the score is what it was."""
    task, (few, many) = linear.task, (Ledger("mase"), Ledger("mase"))
    task.prepare(rows(hours()))
    section, spots = task.sections["test"], task.origins("test")
    found, _ = task.sums(linear.model, section, spots, few)
    assert len(spots) / 6 <= few.n_units <= len(spots) / 6 + 2 and few.unit == "spans of 6 steps"
    total, count = few.statistics["mase"].sum(0).tolist()
    assert total / count == pytest.approx(found["mase"]) and count == 6 * len(spots)
    task.sums(linear.model, section, spots.at(np.arange(0, len(spots), 6)), many)
    assert many.n_units == -(-len(spots) // 6) and many.unit == "forecasts"


@pytest.mark.parametrize("calm", [0.1, 3.0])
def test_intervals_are_not_those_of_an_unusual_validation_span_alone(tmp_path: Path, calm: float) -> None:
    x = np.random.default_rng(3).normal(size=400)
    x[320:360] *= calm  # the validation span
    run = unrolled.train(x, "forecast", "linear-map", tmp_path / "run", horizon=4, season=1, settings={"lags": 2})
    assert 0.7 < run.result["test"]["coverage_80"] < 0.95


def test_a_season_is_found_and_a_linear_map_of_it_is_better_than_repeating_it(linear: Run) -> None:
    result = linear.result
    assert json.loads((linear.path / "data.json").read_text())["facts"]["season"] == 12
    assert result["test"]["mae"] < min(each["test"]["mae"] for each in result["baselines"].values())
    assert result["test"]["coverage_80"] >= 0.6


def test_intervals_of_residuals_cover_what_they_say() -> None:
    random = np.random.default_rng(0)
    growing = random.normal(size=(400, 5, 1)) * np.arange(1, 6)[:, None]
    q = Residuals.fit(growing[:200]).around(np.zeros((200, 5, 1)))
    inside = (q[1] <= growing[200:]) & (growing[200:] <= q[5])
    assert abs(inside.mean() - 0.8) < 0.04
    assert q[6, 0, 4, 0] > 3 * q[6, 0, 0, 0]  # the last step is less certain


def test_intervals_grow_with_the_level_where_errors_do() -> None:
    random = np.random.default_rng(0)
    levels = np.linspace(1, 9, 400)[:, None, None] * np.ones((1, 3, 1))
    noise = random.normal(size=levels.shape)
    grows = Residuals.fit(0.1 * levels * noise, levels=levels)
    q = grows.around(0 * levels, levels)
    inside = (np.abs(0.1 * levels * noise) <= q[LEVELS.index(0.9)]).mean((1, 2))
    assert abs(inside[:100].mean() - 0.8) < 0.06 > abs(inside[-100:].mean() - 0.8)
    assert grows.around(0 * levels[:1], -levels[:1])[-1].min() > 0  # a forecast below those that were seen
    assert Residuals.from_json(grows.to_json()) == grows
    for errors, of in ((noise, levels), (0.1 * levels * noise, levels - 5), (0.0 * noise, levels)):
        assert Residuals.fit(errors, levels=of).least is None  # even, about 0, or none


def test_the_tail_of_a_normal_distribution() -> None:
    from statistics import NormalDist

    q = np.array([[NormalDist().inv_cdf(level)] for level in LEVELS])
    assert tail(q, np.array([1.2815515]))[0] == pytest.approx(0.2, abs=1e-6)
    assert tail(q, np.array([-8.0]))[0] < 1e-4 < tail(q, np.array([-3.0]))[0]


@pytest.mark.parametrize("unit", [1e-14, 1e9])
def test_a_probability_is_that_of_any_unit(unit: float) -> None:
    random = np.random.default_rng(0)
    q, value = np.sort(random.normal(size=(len(LEVELS), 40)), 0), 3 * random.normal(size=40)
    assert np.allclose(tail(unit * q, unit * value), tail(q, value), rtol=1e-6)
    same = np.full((len(LEVELS), 2), 5.0)  # a forecast without any doubt
    assert tail(same * unit, unit * np.array([5.0, 6.0])).tolist() == pytest.approx([1.0, 0.0])


# ---- nothing of the future


@pytest.mark.parametrize("at", [150, 175, 190, 199])
def test_a_later_value_changes_nothing_before_it(at: int) -> None:
    """Neither scale nor season nor inputs nor targets before the value that changes."""
    before, after = rows(hours()), rows(hours())
    after[at]["value"] += 100.0
    asked = NOTHING.__class__(6, 24, None, "none", "standard", None, None, None)
    one, two = (prepare_series(data, SeriesReading(), asked, DataConfig()) for data in (before, after))
    ends = [int(np.asarray(each.columns[LAST])[0]) for each in one.sections.values()]
    assert [int(np.asarray(each.columns[LAST])[0]) for each in two.sections.values()] == ends
    if at >= ends[0]:
        assert np.array_equal(one.sections["train"].columns[SCALE], two.sections["train"].columns[SCALE])
        assert one.codecs["series"] == two.codecs["series"]
        first, second = (each.sections["train"].fields["target"][0][:at] for each in (one, two))
        assert np.array_equal(first, second)


@pytest.mark.parametrize("which", ["linear", "gru"])
def test_a_forecast_depends_on_what_came_before_it_alone(which: str, request: pytest.FixtureRequest) -> None:
    """Forecasts of the test span from each origin, of data that is changed behind it."""
    run: Run = request.getfixturevalue(which)
    x = hours()
    for end in (170, 185):
        changed = x.copy()
        changed[end:] = 50.0
        assert run.predict([x[:end].tolist()]) == run.predict([changed[:end].tolist()])


def test_splits_are_spans_of_one_time_for_all_series() -> None:
    data = [{"series": name, **row} for name, first in (("a", "2024-01-01"), ("b", "2024-01-03"))
            for row in rows(hours(150), first)]  # fmt: skip
    found = prepare_series(
        data, SeriesReading(), Asked(4, 12, None, "none", "standard", "2024-01-06", None, None), DataConfig()
    )
    spans = found.facts["split"]
    assert spans["test"]["from"].startswith("2024-01-06")
    assert spans["train"]["to"] < spans["valid"]["from"] < spans["test"]["from"]
    train = found.sections["train"]
    assert np.asarray(train.columns[LAST]).tolist()[0] - np.asarray(train.columns[LAST]).tolist()[1] == 48


def test_a_share_of_many_short_series_is_some_of_them(tmp_path: Path) -> None:
    """Each cut to its share would be shorter than two seasons."""
    data = [
        {"shop": f"s{i}", "day": t, "value": float(v)} for i in range(30) for t, v in enumerate(hours(60 + i % 7, i))
    ]
    settings = {"series.time": "day", "id": "shop", "horizon": 4, "season": 12, "train_tokens": 300, "threads": 1}
    run = unrolled.train(data, "forecast", "ets", tmp_path / "run", settings=settings, baselines={})
    assert run.result["test"]["mase"] < 1.2


# ---- what a saved run does


def test_a_saved_run_forecasts_with_times_and_intervals(linear: Run) -> None:
    (found,) = unrolled.load(linear.path).do("forecast", None, horizon=3)
    assert found["times"] == ["2024-01-09 08:00:00", "2024-01-09 09:00:00", "2024-01-09 10:00:00"]
    truth = 5 + np.sin(2 * np.pi * np.arange(200, 203) / 12)
    assert np.abs(np.array(found["forecast"]) - truth).max() < 0.25
    for low, high in ((f"low_{p}", f"high_{p}") for p in (50, 80, 95)):
        assert all(a <= m <= b for a, m, b in zip(found[low], found["forecast"], found[high]))
    with pytest.raises(UsageError, match="6 steps, not 7"):
        linear.do("forecast", None, horizon=7)


def test_forecasts_of_large_numbers_keep_their_digits(linear: Run, tmp_path: Path) -> None:
    place = tmp_path / "run"
    run = unrolled.train(rows(1e7 + hours()), "forecast", "linear-map", place, horizon=6, settings={"lags": 24})
    (found,), (small,) = run.do("forecast", None), linear.do("forecast", None)
    assert np.abs(np.array(found["forecast"]) - 1e7 - small["forecast"]).max() < 1e-3
    assert len({each % 1 for each in found["high_80"]}) > 1
    assert run.score(rows(1e7 + hours()))[0]["values"][:3] == pytest.approx((1e7 + hours()[1:4]).tolist(), abs=1e-4)


def test_newer_data_is_continued_in_the_units_of_the_run(linear: Run) -> None:
    newer = rows(hours(230))
    (found,) = linear.do("forecast", newer)
    assert found["times"][0] == "2024-01-10 14:00:00" and len(found["forecast"]) == 6


def test_a_session_predicts_as_a_window_does(gru: Run) -> None:
    x = hours()[:20]
    session = gru.session()
    live = [session.push([value])[0] for value in x]
    assert live[-1]["forecast"] == pytest.approx(gru.predict([x.tolist()])[0]["forecast"], rel=1e-4)
    with pytest.raises(DataError, match="2 numbers, expected 1"):
        session.push([1.0, 2.0])


@pytest.mark.parametrize("own", [{"distribution": "gaussian", "samples": 600}, {"distribution": "point"}])
@pytest.mark.parametrize("gaps", every(2, [False, True]))
def test_a_session_of_a_rollout_predicts_as_a_window_does(own: dict[str, Any], gaps: bool, tmp_path: Path) -> None:
    x = hours(120)
    if gaps:
        x[[30, 31, 77]] = np.nan
    settings = {**QUICK, "steps": 3, "horizon": 4, "lookback": 24, "by": "rollout", **own}
    run = unrolled.train(rows(x), "forecast", "gru", tmp_path / "run", settings=settings, baselines={})
    session = run.session()
    seen = hours()[:20]
    for n, value in enumerate(seen, start=1):
        (live,) = session.push([value])
        if n in (7, 20):  # paths of a window are drawn with other noise
            (whole,) = run.predict([seen[:n].tolist()])
            wide = 1e-4 if own["distribution"] == "point" else 0.1 * (whole["high_80"][0] - whole["low_80"][0])
            for name in ("forecast", "low_80", "high_80"):
                assert live[name] == pytest.approx(whole[name], abs=2 * wide)
    kept = session.save()
    (after,) = session.push([5.0])
    session.restore(kept)
    assert session.push([5.0]) == [after] and after["forecast"] != live["forecast"]


def test_an_encoder_decoder_reads_a_whole_window(tmp_path: Path) -> None:
    settings = {**QUICK, "steps": 1, "horizon": 2, "lookback": 8, "samples": 2}
    run = unrolled.train(rows(hours(80)), "forecast", "seq2seq", tmp_path / "run", settings=settings, baselines={})
    with pytest.raises(UsageError, match=r"a whole window before it forecasts, so it cannot run live"):
        run.session()


def test_what_was_not_expected_has_a_small_probability(linear: Run) -> None:
    x = hours()
    x[150] += 3.0
    (found,) = linear.score(rows(x))
    assert int(np.argmax(found["surprise"])) + 1 in (150, 151)
    assert found["times"][149] == "2024-01-07 06:00:00" and found["p"][149] < 0.01


def test_a_run_with_a_window_of_its_own_cannot_run_live(tmp_path: Path) -> None:
    settings = {**QUICK, "steps": 2, "horizon": 2, "lookback": 8, "relative": "window"}
    run = unrolled.train(rows(hours(80)), "forecast", "bigru", tmp_path / "run", settings=settings, baselines={})
    with pytest.raises(UsageError, match="window"):
        run.session()


# ---- models and distributions


@pytest.mark.parametrize(
    ("model", "own"),
    [
        ("elman", {"distribution": "gaussian"}), ("lstm", {"distribution": "student-t", "by": "rollout", "samples": 8}),
        ("tcn", {"distribution": "point", "loss": "l1"}), ("seq2seq", {"samples": 4}),
        ("jordan", {"feedback_from": "truth", "by": "rollout", "distribution": "point"}),
        ("transformer", {"distribution": "point", "relative": "none"}), ("naive", {}),
    ],
)  # fmt: skip
def test_models_forecast(model: str, own: dict[str, Any], tmp_path: Path) -> None:
    small = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 8, "widths": [4, 4], "d_state": 8}
    known = set(discover.model(model).config.model_fields)
    settings = {**{k: v for k, v in QUICK.items() if k != "d_state"}, **{k: v for k, v in small.items() if k in known}}
    run = unrolled.train(
        rows(hours(90)), "forecast", model, tmp_path / "run", baselines={},
        settings={**settings, "steps": 4, "horizon": 3, "lookback": 12, **own},
    )  # fmt: skip
    (found,) = unrolled.load(run.path).do("forecast", None)
    assert len(found["forecast"]) == 3 and np.isfinite(found["forecast"]).all()
    assert np.isfinite(list(run.result["test"].values())).all()


def test_counts_have_a_distribution_of_counts(tmp_path: Path) -> None:
    x = np.random.default_rng(0).poisson(3.0, 120).astype(float)
    settings = {**QUICK, "steps": 30, "horizon": 2, "lookback": 8, "distribution": "negative-binomial",
                "relative": "none", "scaling": "none"}  # fmt: skip
    run = unrolled.train(rows(x), "forecast", "gru", tmp_path / "run", settings=settings, baselines={})
    (found,) = run.do("forecast", None)
    assert all(float(v).is_integer() and v >= 0 for v in found["low_95"] + found["high_95"])


def test_a_known_change_of_the_future_is_followed(tmp_path: Path) -> None:
    """A level that a known-future covariate announces."""
    random = np.random.default_rng(0)
    on = (np.arange(400) // 20) % 2
    data = [{**row, "sale": int(s)} for row, s in zip(rows(2.0 * on + 0.05 * random.normal(size=400)), on)]
    settings = {**QUICK, "steps": 200, "horizon": 8, "lookback": 12, "distribution": "point", "future": "sale"}
    run = unrolled.train(data, "forecast", "gru", tmp_path / "run", settings=settings)
    assert run.result["test"]["mae"] < 0.5 * run.result["baselines"]["last value"]["test"]["mae"]
    history = [*data[:390], *({"time": row["time"], "value": None, "sale": 1} for row in data[390:398])]
    assert len(run.do("forecast", history)[0]["forecast"]) == 8
    with pytest.raises(DataError, match=r"end 3 steps after the last value.*sale|sale.*end 3 steps"):
        run.do("forecast", history[:393])


def test_missing_values_stay_missing(tmp_path: Path) -> None:
    data = rows(hours(120))
    for i in (5, 30, 31, 32, 100, 115):
        data[i]["value"] = None
    del data[50:53]
    found = prepare_series(data, SeriesReading(), NOTHING, DataConfig())
    assert found.facts["missing"] == 9 and np.isnan(found.sections["train"].fields["target"][0]).sum() == 9
    assert any("3 steps are not in the table" in note for note in found.facts["notes"])
    settings = {**QUICK, "steps": 4, "horizon": 3, "lookback": 12}
    run = unrolled.train(data, "forecast", "gru", tmp_path / "run", settings=settings)
    assert np.isfinite(run.result["test"]["mae"])


# ---- bad input


@pytest.mark.parametrize(
    ("change", "own", "words"),
    [
        (lambda d: d[7].update(time="soon"), {}, ["row 8", "'soon'", "time stamp"]),
        (lambda d: d[7].update(value="many"), {"target": "value"}, ["row 8", "column 'value'", "'many'"]),
        (lambda d: [row.update(value=4.0) for row in d], {}, ["is 4", "nothing to learn"]),
        (lambda d: d.append(dict(d[3])), {}, ["2024-01-01 03:00:00", "twice"]),
        (lambda d: d[9].update(time="2024-01-01 09:20:00"), {}, ["09:20", "irregular"]),
        (lambda d: d.__delitem__(slice(8, None)), {"horizon": 6}, ["horizon of 6", "at least"]),
        (lambda d: [row.update(id="ab"[i % 2]) for i, row in enumerate(d)] and d.__delitem__(slice(1, 60, 4)),
         {"id": "id"}, ["frequency"]),
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence(change: Any, own: dict[str, Any], words: list[str]) -> None:
    data = rows(hours(80))
    change(data)
    horizon = own.pop("horizon", None)
    asked = Asked(horizon, None, None, "none", "standard", None, None, None)
    with pytest.raises(DataError) as error:
        prepare_series(data, SeriesReading.parse(own), asked, DataConfig())
    assert all(word in str(error.value) for word in words), error.value
