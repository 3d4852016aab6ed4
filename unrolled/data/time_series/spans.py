"""Which spans of time are for training, validation and test, and how long a horizon and a look-back are, unless told.

Cuts are the same time for all series, so that no training span has a time behind one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError, UsageError
from unrolled.core.front import option
from unrolled.data.config import DataConfig
from unrolled.data.files.cell_values import shown
from unrolled.data.time_series.codec import Scaling, Transform
from unrolled.data.time_series.stamp_forms import parse_one
from unrolled.data.time_series.stamps import Step
from unrolled.data.time_series.table import Series, SeriesTable

LONGEST_LOOKBACK, LEAST_LOOKBACK = 512, 48
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Asked:
    """What a task wants to know beside the reading; None: it is found in the data."""

    horizon: int | None
    lookback: int | None
    season: int | None
    transform: Transform
    scaling: Scaling
    test_from: str | None
    test_steps: int | None
    backtest: int | None


def choose_horizon(series: Sequence[Series], step: Step | None, season: int | None, table: SeriesTable) -> int:
    """One season, where the series have ten of them, otherwise a tenth of their length."""
    longest = max(each.n_known for each in series)
    seasons = [season] if season else [*(step.seasons() if step else ()), 12]
    horizon = next((n for n in seasons if 10 * n <= longest), max(1, longest // 10))
    table.notes[f"the horizon is {horizon} steps; {option('horizon')} changes that"] = None
    return horizon


def cuts_of(
    series: Sequence[Series], step: Step | None, horizon: int, asked: Asked, config: DataConfig, table: SeriesTable
) -> Whole:
    """Behind which step of each series training, validation and test end: [n, 3], or [n, 2] without test."""
    own = table.reading.time is None  # without times every series has its own end
    ends = np.array([each.n_known for each in series])
    if own:
        firsts, total = np.zeros(len(series), np.int64), int(ends.max())
        wholes = ends
    else:
        grid = _Grid(series, step)
        firsts, total = grid.firsts, grid.total
        wholes = np.full(len(series), total)
    test, valid = _lengths(series, total, horizon, asked, config, table, None if own else grid)
    cuts = [wholes - test - valid, wholes - test, wholes] if test else [wholes - valid, wholes]
    inside = np.stack([np.clip(grid.at(cut) if not own else cut - firsts, 0, ends) for cut in cuts], axis=1)
    shortest = _least(horizon)
    if not bool((inside[:, 0] >= shortest).any()):
        spans = f"{shortest} for training, {valid} for validation" + (f" and {test} for test" if test else "")
        raise DataError(
            f"{table.name}: the longest series has {int(ends.max())} steps, but a horizon of {horizon} needs at least "
            f"{shortest + test + valid}: {spans}; give longer series, or a smaller {option('horizon')}"
        )
    if asked.lookback is not None and asked.lookback + horizon > (longest := int(inside[:, 0].max())):
        raise DataError(
            f"{table.name}: the longest training span has {longest} steps, but a look-back of {asked.lookback} and a "
            f"horizon of {horizon} need {asked.lookback + horizon}; give longer series, or a smaller "
            f"{option('lookback')}"
        )
    return inside


def _least(horizon: int) -> int:
    """Steps of a training span that something can be learned from: one forecast, and something before it."""
    return horizon + 2


class _Grid:
    """Steps of the common time; of irregular series the times themselves, in their order."""

    def __init__(self, series: Sequence[Series], step: Step | None) -> None:
        self.series, self.step = series, step
        self.first = min(int(each.stamps[0]) for each in series)
        if step is None:
            self.times = np.unique(np.concatenate([each.stamps[: each.n_known] for each in series]))
            self.total = len(self.times)
            self.firsts = np.searchsorted(self.times, [each.stamps[0] for each in series])
        else:
            begun = np.array([each.stamps[0] for each in series], np.int64)
            self.firsts = np.rint(step.between(self.first, begun)).astype(np.int64)
            self.total = int((self.firsts + [each.n_known for each in series]).max())

    def at(self, cut: Whole) -> Whole:
        """How many steps of each series are before the cut."""
        if self.step is not None:
            return cut - self.firsts
        stamps = np.append(self.times, self.times[-1] + 1)[np.minimum(cut, self.total)]
        return np.array([np.searchsorted(each.stamps, stamp) for each, stamp in zip(self.series, stamps)])

    def number(self, stamp: int) -> int:
        """How many steps are before a time."""
        if self.step is None:
            return int(np.searchsorted(self.times, stamp))
        return int(np.ceil(self.step.between(self.first, np.array([stamp], np.int64))[0] - 1e-9))


def _lengths(
    series: Sequence[Series], total: int, horizon: int, asked: Asked, config: DataConfig, table: SeriesTable,
    grid: _Grid | None,
) -> tuple[int, int]:  # fmt: skip
    """Steps of the test and of the validation span."""
    usual = config.split == DataConfig().split  # which is for text, where much less is enough
    shares = {"train": 0.8, "valid": 0.1, "test": 0.1} if usual else config.shares()
    least = 2 * horizon if total >= 8 * horizon else horizon
    given = [name for name in ("test_from", "test_steps", "backtest") if vars(asked)[name] is not None]
    if len(given) > 1:
        raise UsageError(f"give one of {option(given[0])} and {option(given[1])}")
    if asked.test_from is not None:
        if grid is None:
            raise UsageError(f"{option('test_from')} needs a column of times; name it with {option('series.time')}")
        test = total - grid.number(parse_one(asked.test_from, table.column, option("test_from")))
        if not 0 < test < total:
            first = table.column.written(min(int(each.stamps[0]) for each in series))
            last = table.column.written(max(int(each.stamps[each.n_known - 1]) for each in series))
            raise UsageError(f"{option('test_from', asked.test_from)} is outside the data, {first} to {last}")
    elif asked.test_steps is not None:
        test = asked.test_steps
    elif asked.backtest is not None:
        test = asked.backtest * horizon
    else:
        test = max(round(shares.get("test", 0.0) * total), least) if "test" in shares else 0
    if 0 < test < horizon:
        raise UsageError(f"the test span has {test} steps, fewer than the horizon of {horizon}; give more of them")
    share = shares["valid"] / (shares["valid"] + shares["train"])
    return test, max(round(share * (total - test)), least)


def require_variety(series: Sequence[Series], cuts: Whole, table: SeriesTable) -> None:
    """Refuse data without any change; tell of series without."""
    spans = ((each, each.values[: max(int(end), 1)]) for each, end in zip(series, cuts[:, 0]))
    constant = [each for each, span in spans if not np.fmax.reduce(span, None) > np.fmin.reduce(span, None)]
    if len(constant) == len(series):
        value = next((v for v in series[0].values[:, 0] if not np.isnan(v)), 0.0)
        raise DataError(f"{table.name}: every value of the training span is {value:g}, so there is nothing to learn")
    if constant:
        names = ", ".join(shown(each.name) for each in constant[:3])
        more = f" and {len(constant) - 3} more" if len(constant) > 3 else ""
        are = "1 series is" if len(constant) == 1 else f"{len(constant)} series are"
        table.notes[f"{are} constant in the training span, or without any value there: {names}{more}"] = None


def choose_lookback(horizon: int, season: int, longest: int) -> int:
    """Steps that are read before a forecast, unless told: three horizons, two seasons, and no more than there are."""
    wanted = max(3 * horizon, 2 * season, LEAST_LOOKBACK)
    return max(1, min(wanted, LONGEST_LOOKBACK, longest - horizon))
