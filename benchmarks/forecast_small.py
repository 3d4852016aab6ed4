"""Small series beside statsmodels: `python -m benchmarks.forecast_small [air sunspots taylor temps]`.

With default settings `unrolled compare` chooses a model on validation data. On the same origins, every one of the test
span, its errors stand beside those of the last value, the last season, the drift and the mean, and of exponential
smoothing and autoregression of statsmodels: fitted once to the same training span, brought up to each origin without a
new fit, the best of them taken by its errors on test data. Results go to benchmarks/results/forecast-small-SET.json.
"""

from __future__ import annotations

import csv
import itertools
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.pieces import Pieces, run_pieces
from benchmarks.reproduce import DataSet, find

Array = NDArray[np.float64]


class Protocol(NamedTuple):
    data: DataSet
    horizon: int
    season: int
    test: int


def _file(name: str, sha256: str) -> DataSet:
    return DataSet(f"small-series/{name}", sha256, f"datasets/{name} of the GitHub repository unit8co/darts")


SETS = {
    "air": Protocol(
        _file("AirPassengers.csv", "5f8b316b84545d9cfb05612298df8415ce4c44421c7012d109465564b07ebc06"), 12, 12, 36
    ),
    "sunspots": Protocol(
        _file("monthly-sunspots.csv", "4b91dd8e13bdf6a95c3034c71ceca0152269986c6a91706c6eaf50c1d50081c8"), 12, 132, 564
    ),
    "taylor": Protocol(
        _file("taylor.csv", "0c9cbfcb414fc0897ea27773f1dabbb933184c09b90b750d2029631d4a451ed0"), 48, 336, 806
    ),
    "temps": Protocol(
        _file("temps.csv", "24921d8f1bfcb3050566ec947a940faaf549bacbad43cae1270e37d34fda76fc"), 7, 365, 730
    ),
}
LONGEST_ESTIMATED = 50  # steps of a season whose initial state statsmodels estimates; beyond, by its heuristic


def values_of(place: Path) -> Array:
    with place.open() as file:
        return np.array([float(row[-1]) for row in list(csv.reader(file))[1:] if row])


def naive(x: Array, origins: Array, asked: Protocol) -> dict[str, Array]:
    """Forecasts [n, H] without a fit."""
    h = np.arange(asked.horizon)
    last = x[origins - 1][:, None]
    slope = (last - x[0]) / (origins - 1)[:, None]
    return {
        "last value": np.repeat(last, asked.horizon, 1),
        "seasonal naive": x[origins[:, None] + h - asked.season * (1 + h // asked.season)],
        "drift": last + slope * (h + 1),
        "mean": np.repeat((np.cumsum(x)[origins - 1] / origins)[:, None], asked.horizon, 1),
    }


def autoregression(x: Array, n: int, origins: Array, asked: Protocol) -> tuple[str, Array]:
    """statsmodels' AutoReg of the order with the least AIC."""
    from statsmodels.tsa.ar_model import AutoReg, ar_select_order

    long = asked.season > LONGEST_ESTIMATED
    most = min(max(asked.season + 1 if long else 2 * asked.season, 24), n // 3)
    lags = ar_select_order(x[:n], maxlag=most, ic="aic", trend="c").ar_lags
    fitted = AutoReg(x[:n], lags=lags, trend="c").fit()
    weights = np.zeros(max(lags))
    weights[-np.array(lags)] = fitted.params[1:]
    line = np.stack([x[end - len(weights) : end] for end in origins])
    for _ in range(asked.horizon):
        line = np.concatenate([line, fitted.params[0] + line[:, -len(weights) :] @ weights[:, None]], 1)
    return f"AutoReg({max(lags)})", line[:, -asked.horizon :]


def smoothed(x: Array, n: int, origins: Array, asked: Protocol) -> list[tuple[str, Array]]:
    """Every form of statsmodels' exponential smoothing, its own recursion run on behind the training span."""
    from statsmodels.tsa.holtwinters import ExponentialSmoothing

    found = []
    for trend, seasonal in itertools.product((None, "add", "damped"), (None, "add", "mul")):
        if seasonal and (n < 2 * asked.season or (seasonal == "mul" and (x <= 0).any())):
            continue
        how = "heuristic" if seasonal and asked.season > LONGEST_ESTIMATED else "estimated"
        fitted = ExponentialSmoothing(
            x[:n], trend="add" if trend else None, damped_trend=trend == "damped", seasonal=seasonal,
            seasonal_periods=asked.season if seasonal else None, initialization_method=how,
        ).fit()  # fmt: skip
        line = _run(x, fitted.params, trend, seasonal, origins, asked)
        found.append((f"ETS({trend or 'none'}, {seasonal or 'none'})", line))
    return found


def _run(x: Array, p: dict[str, Any], trend: Any, seasonal: Any, origins: Array, asked: Protocol) -> Array:
    """Holt-Winters with given rates over all values, and its forecasts [n, H] at the origins."""
    alpha, beta, gamma = (
        float(np.nan_to_num(p.get(name, 0.0) or 0.0))
        for name in ("smoothing_level", "smoothing_trend", "smoothing_seasonal")
    )
    phi = float(p["damping_trend"]) if trend == "damped" else 1.0
    level, slope = float(p["initial_level"]), float(p["initial_trend"]) if trend else 0.0
    m, multiplies = (asked.season if seasonal else 1), seasonal == "mul"
    season = np.array(p["initial_seasons"], float) if seasonal else np.zeros(1)
    ahead = np.cumsum(phi ** np.arange(1, asked.horizon + 1))
    at, found = set(origins.tolist()), []
    for i in range(len(x) + 1):
        if i in at:
            of = season[(i + np.arange(asked.horizon)) % m]
            found.append((level + ahead * slope) * of if multiplies else level + ahead * slope + of)
        if i == len(x):
            break
        s, before = season[i % m], level + phi * slope
        old = level
        level = alpha * (x[i] / s if multiplies else x[i] - s) + (1 - alpha) * before
        slope = beta * (level - old) + (1 - beta) * phi * slope if trend else 0.0
        if seasonal:
            season[i % m] = gamma * (x[i] / before if multiplies else x[i] - before) + (1 - gamma) * s
    return np.array(found)


def small(name: str, time: str = "4m") -> dict[str, Any]:
    """A comparison on one of the sets, and its peers."""
    import unrolled

    asked = SETS[name]
    place = find(asked.data)
    settings = {"horizon": asked.horizon, "test_steps": asked.test, "time": time, "jobs": 1, "threads": 1}
    with tempfile.TemporaryDirectory() as folder:
        comparison = unrolled.compare(place, task="forecast", out=Path(folder) / "comparison", settings=settings)
        best = comparison.best
        rows = [
            {key: row.get(key) for key in ("label", "kind", "model", "valid", "score", "seconds")}
            for row in comparison.rows
        ]
        chosen, figures, facts = comparison.table["selected"], best.result, best.result["test"]
    x = values_of(place)
    first = len(x) - asked.test
    n = first - max(round(first / 9), 2 * asked.horizon)  # where validation begins
    origins = np.arange(first, len(x) - asked.horizon + 1)
    truth = x[origins[:, None] + np.arange(asked.horizon)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peers = [autoregression(x, n, origins, asked), *smoothed(x, n, origins, asked)]
    errors = {label: float(np.abs(line - truth).mean()) for label, line in peers}
    plain = {label: float(np.abs(line - truth).mean()) for label, line in naive(x, origins, asked).items()}
    return {
        "set": name, "horizon": asked.horizon, "season": asked.season, "origins": len(origins), "time": time,
        "model": chosen, "chosen": figures.get("chosen"), "mae": facts["mae"], "coverage_80": facts["coverage_80"],
        "coverage_50": facts["coverage_50"], "coverage_95": facts["coverage_95"], "rows": rows, "baselines": plain,
        "statsmodels": errors,
    }  # fmt: skip


PIECES: Pieces = {name: (lambda name=name, **given: small(name, **given)) for name in SETS}


if __name__ == "__main__":
    run_pieces(PIECES, "forecast-small", __doc__)
