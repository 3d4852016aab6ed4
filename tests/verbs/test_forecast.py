"""The command that forecasts, live forecasts, and how unusual values are found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unrolled
from unrolled.cli import forecast as command
from unrolled.cli.live import lines_of
from unrolled.core.errors import DataError, UsageError
from unrolled.runs.run import Run

N, H = 120, 4
LINE = 20 + 3 * np.sin(np.arange(N) * np.pi / 3) + 0.2 * np.random.default_rng(0).normal(size=N)
QUICK = {"steps": 2, "warmup": 1, "batch_size": 8, "evaluate_tokens": 40, "d_state": 3, "lookback": 12}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    folder, runs = tmp_path_factory.mktemp("forecasts"), dict[str, Run]()

    def run(model: str, **own: Any) -> Run:
        if (key := f"{model} {own}") not in runs:
            settings = {"horizon": H, "season": 6, "threads": 1, **own}
            out = folder / f"{model}-{len(runs)}"
            runs[key] = unrolled.train(LINE, "forecast", model, out, settings=settings, baselines={})
        return runs[key]

    return run


def ask(run: Run, capsys: pytest.CaptureFixture[str], watched: bool = False, **more: Any) -> str:
    """What the command prints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout.isatty", lambda: watched, raising=False)
        command.command(run=str(run.path), **{"__horizon": None, **more})
    return capsys.readouterr().out


def test_the_command_prints_draws_and_writes(
    made: Callable[..., Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = made("linear-map", lags=12)
    (told,) = run.do("forecast", None)
    piped = ask(run, capsys)
    assert [line.split("\t")[0] for line in piped.splitlines()] == told["times"] == [str(N + h) for h in range(H)]
    seen = ask(run, capsys, watched=True)
    assert "Forecast of value" in seen and "95 % interval" in seen and "MASE" in seen and "░" in seen
    for name, begins in (("f.png", b"\x89PNG"), ("f.svg", b"<svg")):
        ask(run, capsys, plot=str(tmp_path / name), out=str(tmp_path / "f.csv"))
        assert begins in (tmp_path / name).read_bytes()[:200]
    rows = (tmp_path / "f.csv").read_text().splitlines()
    assert rows[0] == "time,forecast,low_50,high_50,low_80,high_80,low_95,high_95" and len(rows) == H + 1
    with pytest.raises(UsageError, match=r"must end in \.png or \.svg"):
        ask(run, capsys, plot="f.gif")


# ---- live


@pytest.mark.parametrize(("model", "own"), [("linear-map", {"lags": 12}), ("ets", {}), ("gru", QUICK)])
def test_values_that_are_pushed_give_the_forecast_of_the_whole_series(
    made: Callable[..., Run], model: str, own: dict[str, Any]
) -> None:
    run = made(model, **own)
    session, sizes = run.session(), set()
    for value in LINE[-12:] if model == "gru" else LINE:
        (tick,) = session.push([value])
        sizes.add(len(session.save()))
    assert np.allclose(tick["forecast"], run.do("forecast", [LINE.tolist()])[0]["forecast"], rtol=1e-4)
    assert not session.grows
    assert max(sizes) < 2 * min(sizes)  # what is carried on stays as large as it is
    assert tick["low_80"][0] < tick["forecast"][0] < tick["high_80"][0]


def test_lines_are_forecast_as_they_arrive(made: Callable[..., Run]) -> None:
    session = made("linear-map", lags=12).session()
    found = list(lines_of(session, ["20\n", "21.5\n"]))
    assert len(found) == 2 and "forecast" in found[0]
    for line, says in (("nan", "missing"), ("inf", "finite"), ("1 2", "found 2 numbers, expected 1")):
        with pytest.raises(DataError, match=f"line 1.*{says}"):
            list(lines_of(session, [line]))


@pytest.mark.parametrize(
    ("model", "own", "says"),
    [
        ("bigru", {"relative": "window"}, "normalises the whole window"),
        ("seq2seq", {"samples": 2}, "reads a whole window"),
    ],
)
def test_what_cannot_run_live_says_why(made: Callable[..., Run], model: str, own: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=f"{says}.*cannot run live; train"):
        made(model, **QUICK, **own).session()


# ---- unusual values


def test_a_spike_and_a_shift_of_the_level_stand_out(made: Callable[..., Run]) -> None:
    values = LINE.copy()
    values[80] += 8
    values[100:] += 8
    (found,) = made("linear-map", lags=12).score([values.tolist()])
    surprise = np.array([np.nan, *(np.nan if v is None else v for v in found["surprise"])])  # of each step
    quiet = np.nanmedian(surprise[20:80])
    assert surprise[80] > 3 * quiet and surprise[100] > 3 * quiet
    assert set(np.argsort(surprise[20:])[-4:] + 20) & {80, 81} and np.nanargmax(surprise[95:]) + 95 in range(100, 107)
    assert all(0 <= p <= 1 for p in found["p"] if p is not None)
    assert found["times"][79] == "80" and found["values"][79] == pytest.approx(values[80], rel=1e-5)


def of_shops(shops: str, values: np.ndarray) -> list[dict[str, Any]]:
    return [
        {"shop": shop, "day": t, "value": v + 5 * k}
        for k, shop in enumerate(shops)
        for t, v in enumerate(values.tolist())
    ]


def test_a_score_knows_nothing_of_what_comes_later(tmp_path: Path) -> None:
    """Of a series that the run does not know: its scale is that of its first steps, which are not judged."""
    own = {"horizon": H, "season": 6, "series.time": "day", "id": "shop", "lookback": 12, "lags": 6}
    run = unrolled.train(of_shops("ab", LINE), "forecast", "linear-map", tmp_path / "run", settings=own, baselines={})
    later = np.concatenate([LINE[:80], 1000 * LINE[80:]])
    found, changed = (run.score(of_shops("c", 7 * values))[0] for values in (LINE, later))
    assert found["p"][:79] == changed["p"][:79] and found["expected"][:79] == changed["expected"][:79]
    assert found["p"][:11] == [None] * 11 and None not in found["p"][11:] and len(found["p"]) == N - 1
    assert np.allclose(found["values"], 7 * LINE[1:], rtol=1e-5)
    known, other = (run.score(of_shops("a", values))[0] for values in (LINE, later))
    assert known["p"][:79] == other["p"][:79] and known["p"][0] is not None
