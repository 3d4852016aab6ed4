"""Forecast: predict the next steps of real-valued series, with intervals.

    p(x_{t+1}, .., x_{t+H} | x_1 .. x_t, covariates),     each number with quantiles

Metrics are over all forecasts that lie wholly inside of a span of time: errors of the median, of the mean where they
are squared, and how often intervals hold the truth. Every score stands beside last value, seasonal naive, drift and
mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from unrolled.core import task
from unrolled.core.batch import TARGET
from unrolled.core.errors import DataError, UsageError
from unrolled.core.flow import Flow
from unrolled.core.front import option
from unrolled.core.metric import Metric
from unrolled.core.sharing import gathered
from unrolled.data.examples import Examples
from unrolled.data.files.cell_values import shown
from unrolled.data.look import Look
from unrolled.data.time_series.guess import guess_series
from unrolled.data.time_series.histories import History, section_of
from unrolled.data.time_series.prepare import FIRST, LAST, NAMES, SCALE, TIMES, encode_histories, judged_from
from unrolled.data.time_series.windows import Spots, origins
from unrolled.objectives.forecasts import INTERVALS, MEDIAN, Sums, tail
from unrolled.pictures import forecasts as pictures
from unrolled.tasks._forecast_config import Config as Config
from unrolled.tasks._forecast_live import flow_of_values
from unrolled.tasks._inside import Inside, listed, plain
from unrolled.tasks._series import targets_of
from unrolled.tasks._solved import is_solved

ALIASES = ("forecasting", "time-series", "timeseries")

DEARER = 10  # times as many fewer forecasts are made while training, where each is drawn many times
AT_ONCE = 256  # series that are continued together
SHOWN = 3  # horizons before a forecast that pictures show
PICTURED, TESTED, TABLED = 200, 5, 24  # forecasts that metrics by step are of, that are drawn, and of a table

Numbers = NDArray[np.float64]


class Task(Inside):
    SCORE = "mase"
    DEFAULT_MODEL = "linear-map"
    ADVICE = {"linear-map": {}}  # fitted in closed form, and hard to beat
    ALWAYS = ("ar", "ets", "theta")  # the classical ones, likewise
    FIGURES = ("mase", "mae", "rmse", "smape", "wql", "coverage_80")

    config: Config

    @classmethod
    def guess(cls, look: Look, given: Mapping[str, Any]) -> task.Guess | None:
        return guess_series(look, given)

    def first(self, source: Any, n: int) -> list[dict[str, Any]]:
        section = self.sections["train"]
        found = []
        for i in range(min(n, section.n_examples)):
            values, name = self._units(section, i, 0, 3), section.columns[NAMES][i]
            begins = self.codec.written(int(section.fields[TIMES][i][0]))
            found.append(({"series": name} if name else {}) | {"from": begins, "values": plain(values)})
        return found

    def baselines(self) -> list[task.Baseline]:
        methods = {"last value": "last", "drift": "drift", "mean": "mean"}
        found = [task.Baseline(label, "naive", {"method": method}) for label, method in methods.items()]
        if (season := self.codec.season) > 1:
            found.insert(1, task.Baseline("seasonal naive", "naive", {"method": "seasonal", "season": season}))
        return found

    def uses(self) -> list[task.Use]:
        return [
            task.Use("forecast the next steps", "forecast", ()),
            task.Use("continue newer data", "forecast", ("--history", "NEW_DATA")),
            task.Use("find unusual values", "score", ("NEW_DATA",)),
        ]

    # ---- metrics

    def metrics(self) -> list[Metric]:
        return [Metric("mase"), Metric("mae")]

    def evaluate(
        self, model: Any, split: str, limit: int | None = None, ledger: task.Ledger | None = None
    ) -> dict[str, float]:
        spots = self.origins(split)
        if limit is not None:
            each = self.codec.horizon * self.codec.d_step * (DEARER if self.stepwise else 1)
            spots = spots.some(max(1, limit // each))
        return self.sums(model, self.sections[split], spots, ledger)[0]

    def measure_on(self, source: Any) -> Callable[[Any], dict[str, float]]:
        found = encode_histories(source, self.reading, self.codec, judged=True)
        begin = [judged_from(self.codec, len(each.values)) for _, each in found]
        section = section_of(found, begin)
        spots = origins(section, self.codec, self.config.evaluating.stride or 1)
        if not len(spots):
            needed = self.codec.horizon + 1
            raise DataError(f"{source}: no series has the {needed} values that evaluating a forecast needs")
        return lambda model: self.sums(model, section, spots)[0]

    def sums(
        self, model: Any, section: Examples, spots: Spots, ledger: task.Ledger | None = None
    ) -> tuple[dict[str, float], Sums]:
        """The metrics of the forecasts from some spots, and the sums that they come from."""
        sums, codec = Sums(self.codec.horizon), self.codec
        units = spots.within(codec.horizon)
        for rows, y in self.forecasts(model, section, spots):
            some = spots.at(rows)
            scale = _scales(section, some.series)
            q, mean = self.quantiles(y, scale)
            scale = scale[:, None]  # [n, 1, 3, D]
            encoded = targets_of(section, codec, some).astype(np.float64).reshape(mean.shape)
            target, told = codec.decode(encoded, scale), codec.decode(q, scale[None])
            sums.add(told, codec.decode(mean, scale), target, scale[:, :, 2], mean - encoded)
            if ledger is not None:
                _enter(ledger, units[rows], np.abs(told[MEDIAN] - target), scale[:, :, 2])
        if ledger is not None:
            apart = len(units) == len(np.unique(units))
            ledger.unit = "forecasts" if apart else f"spans of {codec.horizon} steps"
            ledger.gather()
        sums = Sums.together(gathered(sums))
        n = int(sums.of["n"].sum())
        if n == 0:
            raise DataError("all values to forecast are missing in this span, so there is nothing to evaluate")
        return {**sums.metrics(), "tokens": n}, sums

    def predictions(self, model: Any, split: str, limit: int) -> Iterator[dict[str, Any]]:
        section, spots = self.sections[split], self.origins(split).some(limit)
        lines: dict[int, dict[str, Any]] = {}
        for rows, y in self.forecasts(model, section, spots):
            q, _ = self.quantiles(y, _scales(section, spots.series[rows]))
            for k, row in enumerate(rows.tolist()):
                i, end = int(spots.series[row]), int(spots.ends[row])
                limit_of = int(np.asarray(section.columns[LAST])[i])
                came = self._units(section, i, end, min(end + self.codec.horizon, limit_of))
                error = np.abs(self._told(section, i, q[:, k])[MEDIAN][: len(came)] - came)
                lines[row] = {
                    **self._line(section, i, end, q[:, k], self.codec.horizon), "target": plain(came),
                    "history": plain(self._units(section, i, max(0, end - self.codec.lookback), end)), "end": end,
                    "split": split, "error": _one(error),
                }  # fmt: skip
        yield from (lines[row] for row in sorted(lines))

    def pictures(self, model: Any, split: str) -> dict[str, Any]:
        """The next steps behind the data, forecasts inside of the split with what came, and metrics by step."""
        section, spots, H = self.sections[split], self.origins(split), self.codec.horizon
        i = int(spots.series[-1])
        name = self.name_of(section, i)
        by_step = self.sums(model, section, spots.some(PICTURED))[1].by_step()
        found = {"forecast-2-backtest": self._backtest(model, section, i, name), **pictures.by_step(by_step, split)}
        if self.config.evaluating.backtest is not None:
            found["forecast-3-backtest"] = self._backtest_table(model, section, spots)
        end = History(section, i).length
        free = not self.codec.d_known or (is_solved(model) and self.codec.step is not None)
        if free or len(section.fields[TIMES][i]) >= end + H:
            line = self._lines(model, section, i, [end])[end]
            first = max(0, end - SHOWN * H)
            before, times = self._units(section, i, first, end)[:, :1], self.times_of(section, i, first, end)
            found["forecast-1-next"] = pictures.forecast(plain(before), times, line, (), name)
        return found

    def _backtest(self, model: Any, section: Examples, i: int, name: str) -> Any:
        """The last forecasts of a span that do not overlap."""
        H, last = self.codec.horizon, int(np.asarray(section.columns[LAST])[i])
        first = max(int(np.asarray(section.columns[FIRST])[i]), 1)
        n = min(self.config.evaluating.backtest or TESTED, (last - first) // H)
        ends = [last - k * H for k in range(1, n + 1)]
        begin = max(0, min(ends) - SHOWN * H)
        lines = {end - begin: line for end, line in self._lines(model, section, i, ends).items()}
        values = plain(self._units(section, i, begin, last)[:, :1])
        return pictures.backtest(values, self.times_of(section, i, begin, last), lines, name)

    def _backtest_table(self, model: Any, section: Examples, spots: Spots) -> Any:
        shown = spots.some(TABLED)
        rows = []
        for k in range(len(shown)):
            here = shown.at(np.array([k]))
            i, end = int(here.series[0]), int(here.ends[0])
            if not np.isnan(self._units(section, i, end, end + self.codec.horizon)).all():
                metrics, name = self.sums(model, section, here)[0], str(section.columns[NAMES][i])
                rows.append((name, self.times_of(section, i, end, end + 1)[0], metrics))
        return pictures.backtests(rows, several=section.n_examples > 1)

    def _lines(self, model: Any, section: Examples, i: int, ends: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Forecasts of a series from some of its ends, by end."""
        spots, found = Spots(np.full(len(ends), i), np.array(ends)), {}
        for rows, y in self.forecasts(model, section, spots):
            q, _ = self.quantiles(y, _scales(section, spots.series[rows]))
            for k, row in enumerate(rows.tolist()):
                found[ends[row]] = self._line(section, i, ends[row], q[:, k], self.codec.horizon)
        return found

    # ---- other series

    def read(self, source: Any) -> Iterator[list[task.Given]]:
        """The series of some data up to their last value; None: those that the run was trained on."""
        if isinstance(source, list | tuple) and source and all(_is_series(each) for each in source):
            yield [task.Given(each, number=i, place=f"series {i}") for i, each in enumerate(source)]
            return
        section = self.histories() if source is None else self._section(source)
        name = str(self.reading.id or "series")
        for begin in range(0, section.n_examples, AT_ONCE):
            some = [History(section, i) for i in range(begin, min(begin + AT_ONCE, section.n_examples))]
            yield [
                task.Given(
                    each, names={name: each.name} if each.name else {}, number=each.number, place=f"series {each.name}"
                )
                for each in some
            ]

    def _section(self, source: Any) -> Examples:
        found = encode_histories(source, self.reading, self.codec)
        if not found:
            raise DataError(f"{source}: no series has a value, so there is nothing to continue")
        return section_of(found)

    def predict(self, model: Any, given: Sequence[task.Given], decoding: Any = None) -> Iterator[dict[str, Any]]:
        """The next steps of each series, as `forecast` gives them."""
        yield from self.forecast(model, given, None)

    def forecast(self, model: Any, given: Sequence[task.Given], horizon: int | None) -> Iterator[dict[str, Any]]:
        """Quantiles of the next steps of each series."""
        n = self.codec.horizon if horizon is None else horizon
        if n > self.codec.horizon:
            longer = f"train with {option('horizon', n)} for more"
            raise UsageError(f"this run forecasts {self.codec.horizon} steps, not {n}; {longer}")
        for each in (self.history(one) for one in given):
            if self.codec.step is None or not is_solved(model):  # which has no use for covariates
                self._require_future(each, n)
            spot = Spots(np.array([each.number]), np.array([each.length]))
            (_, y) = next(self.forecasts(model, each.section, spot))
            q, _ = self.quantiles(y, _scales(each.section, spot.series))
            yield self._line(each.section, each.number, each.length, q[:, 0], n)

    def before(self, given: task.Given, horizon: int) -> tuple[str, list[str], list[float | None]]:
        section, i = history = self.history(given)
        end = history.length
        first = max(0, end - SHOWN * horizon)
        name = self.name_of(section, i)
        return name, self.times_of(section, i, first, end), plain(self._units(section, i, first, end)[:, :1])

    def offered(self, value: Any) -> task.Offered:
        """The values of a series in the units of the data; a run with covariates reads more than that."""
        section, i = history = self.history(task.Given(value, place="the input"))
        values = self._units(section, i, 0, history.length)
        self._bare(values, "the input")
        return task.Offered("numbers", plain(values))

    def score(self, model: Any, given: Sequence[task.Given]) -> Iterator[dict[str, Any]]:
        """Of each step of a series but the first, how unexpected it was by what came before: the probability of a value
        at least as far out, and minus its logarithm as the surprise. The first steps of a series that the run does not
        know give it a scale and are not judged."""
        for each, begin in (self.scaled_by_past(self.history(one)) for one in given):
            ends = np.arange(begin, each.length)
            spots = Spots(np.full(len(ends), each.number), ends)
            expected, p = np.full(each.length - 1, np.nan), np.full(each.length - 1, np.nan)
            values = self._units(each.section, each.number)
            for rows, y in self.forecasts(model, each.section, spots):
                q, _ = self.quantiles(y, _scales(each.section, spots.series[rows]))
                told = self._told(each.section, each.number, q[:, :, 0, 0, None])[..., 0]  # [Q, n] of the next step
                at = ends[rows] - 1
                expected[at], p[at] = told[MEDIAN], tail(told, values[ends[rows], 0])
            yield {
                "times": self.times_of(each.section, each.number, 1, each.length),
                "values": plain(values[1 : each.length]),
                "expected": plain(expected[:, None]), "p": listed(p),
                "surprise": listed(-np.log(np.maximum(p, 1e-300))),
            }  # fmt: skip

    def _require_future(self, history: History, n: int) -> None:
        """Known-future covariates must reach as far as the forecast."""
        if not self.codec.d_known:
            return
        known = len(history.section.fields[TIMES][history.number]) - history.length
        if known < self.codec.horizon and known < n:
            of = f" of series {shown(history.name)}" if history.name else ""
            names = ", ".join(name for name, _, _ in self.codec.known) or "time stamps"
            raise DataError(
                f"the known-future covariates ({names}){of} end {known} steps after the last value, but a "
                f"forecast of {n} steps needs {n}; add rows with them and an empty target, or give a smaller "
                f"{option('horizon')}"
            )

    def _units(self, section: Examples, i: int, first: int = 0, last: int | None = None) -> Numbers:
        """The values [n, D] of a series, or of some of its steps, in the units of the data."""
        encoded, scale = section.fields[TARGET][i][first:last].astype(np.float64), np.asarray(section.columns[SCALE])[i]
        return self.codec.told(encoded, scale)

    def _told(self, section: Examples, i: int, q: Numbers) -> Numbers:
        return self.codec.told(q, np.asarray(section.columns[SCALE])[i])

    def _line(self, section: Examples, i: int, end: int, q: Numbers, n: int) -> dict[str, Any]:
        """A forecast [Q, H, D] from a spot as JSON: n steps with their times, the median and the ends of intervals."""
        told = self._told(section, i, q)[:, :n]
        line: dict[str, Any] = {"series": section.columns[NAMES][i], "times": self.times_of(section, i, end, end + n)}
        line["forecast"] = plain(told[MEDIAN])
        for percent, (low, high) in INTERVALS.items():
            line[f"low_{percent}"], line[f"high_{percent}"] = plain(told[low]), plain(told[high])
        return line

    # ---- live

    def flow(self, model: Any, condition: str | None = None) -> Flow:
        """New values one by one, each with a forecast of the next steps; `condition` names the series."""
        rolled = (self.emission, self.n_paths) if self.stepwise and not is_solved(model) else None
        return flow_of_values(model, self.codec, self.quantiles, condition, rolled)


def _is_series(value: Any) -> bool:
    """Whether a value is a series by itself: numbers in a list or an array."""
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _scales(section: Examples, series: NDArray[np.int64]) -> Numbers:
    """[n, 3, D]"""
    found: Numbers = np.asarray(section.columns[SCALE])[series]
    return found


def _enter(ledger: task.Ledger, units: NDArray[np.int64], error: Numbers, naive: Numbers) -> None:
    """The errors [n, H, D] of forecasts, as they are and beside those of the naive forecast."""
    seen = ~np.isnan(error)
    for metric, values in (("mase", error / naive), ("mae", error)):
        both = np.stack([np.where(seen, values, 0.0).sum((1, 2)), seen.sum((1, 2))], axis=1)
        ledger.put(metric, torch.from_numpy(units), torch.from_numpy(both))


def _one(error: Numbers) -> float | None:
    return None if np.isnan(error).all() else float(np.nanmean(error))
