"""Series on one grid of times: steps that are left out of a table are missing values, which is reported."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.core.front import option
from unrolled.data.files.cell_values import shown
from unrolled.data.time_series.stamps import AT_ONCE, UNITS, Step, step_of
from unrolled.data.time_series.table import Series, SeriesTable

DAYS = {Step(1, "business days"), Step(UNITS["day"], "microseconds")}
MOST_MISSING = 0.5  # of the steps of a series; more is another frequency


def on_grid(table: SeriesTable) -> tuple[list[Series], Step | None]:
    """All series with every step of their common grid; irregular ones as they are."""
    if table.reading.spacing == "irregular":
        return table.series, None
    if table.reading.time is None:
        return table.series, Step(1, "numbers")
    step = step_of([each.stamps for each in table.series], table.column.are)
    if step is None:
        _explain(table)
    assert step is not None
    _one_frequency(table, step)
    if step.of == "business days":
        note = "the step is 1 business day (Monday to Friday), because no time is on a weekend"
        table.notes[f"{table.name}: {note}"] = None
    found = [_filled(each, step, table) for each in table.series]
    left_out = sum(len(new.stamps) - len(old.stamps) for new, old in zip(found, table.series))
    if left_out:
        first = next(new for new, old in zip(found, table.series) if len(new.stamps) > len(old.stamps))
        at = table.column.written(int(first.stamps[_first_gap(first)]))
        of = f" of series {shown(first.name)}" if first.name else ""
        few = f"1 step is not in the table (at {at}{of}) and counts as a missing value"
        many = f"{left_out:,} steps are not in the table (the first at {at}{of}) and count as missing values"
        table.notes[f"{table.name}: the step is {step}; {few if left_out == 1 else many}"] = None
    return found, step


def on_saved_grid(series: Series, step: Step | None, table: SeriesTable) -> Series:
    """A series of other data, by the step of a saved run."""
    if step is None or table.reading.time is None:
        return series
    return _filled(series, step, table)


def require_alike(table: SeriesTable, are: str, zoned: bool) -> None:
    """Refuse times of another kind than those of a saved run."""
    if table.reading.time is None:
        return
    kinds = {"times": "dates", "numbers": "numbers"}
    if table.column.are != are:
        raise DataError(
            f"{table.name}, column '{table.reading.time}': the times are {kinds[table.column.are]}, but those of the "
            f"run are {kinds[are]}; write them as in the training data"
        )
    if table.column.zoned != zoned:
        raise DataError(
            f"{table.name}, column '{table.reading.time}': the times are written {'with' if not zoned else 'without'} "
            f"a time zone, but those of the run {'without' if not zoned else 'with'} one; write them as in the "
            "training data"
        )


def _first_gap(series: Series) -> int:
    """The first step that was put in: it has neither a value nor anything beside it."""
    empty = np.isnan(series.values).all(1) & np.isnan(series.past).all(1) & np.isnan(series.known).all(1)
    return int(np.flatnonzero(empty)[0])


def _filled(series: Series, step: Step, table: SeriesTable) -> Series:
    if step.of in ("microseconds", "numbers") and _are_even(series.stamps, step.size):
        return series
    at = step.between(int(series.stamps[0]), series.stamps)  # [T]
    numbers = np.rint(at).astype(np.int64)
    off = np.flatnonzero(np.abs(at - numbers) > 1e-9)
    if len(off):
        stamp = int(series.stamps[off[0]])
        of = f" of series {shown(series.name)}" if series.name else ""
        raise DataError(
            f"{table.place(series.name, stamp)}: the time {table.column.written(stamp)}{of} is not a multiple of the "
            f"step ({step}) after the first; "
            f"correct it, or use {option('spacing', 'irregular')}"
        )
    n = int(numbers[-1]) + 1
    if n == len(numbers):
        return series
    if len(numbers) < (1 - MOST_MISSING) * n:
        of = f"series {shown(series.name)}" if series.name else "the series"
        gap = int(np.diff(numbers).argmax())
        before, after = (table.column.written(int(series.stamps[gap + k])) for k in (0, 1))
        raise DataError(
            f"{table.place(series.name, int(series.stamps[gap + 1]))}: {of} has {len(numbers):,} of the {n:,} steps of "
            f"{step} between its first and its last time, and {before} is followed by {after}; correct that, or if its "
            f"frequency changes, split it by frequency, or use {option('spacing', 'irregular')}"
        )
    stamps = np.array([step.moved(int(series.stamps[0]), k) for k in range(n)], np.int64)
    return replace(
        series, stamps=stamps, values=_spread(series.values, numbers, n), past=_spread(series.past, numbers, n),
        known=_spread(series.known, numbers, n),
    )  # fmt: skip


def _are_even(stamps: NDArray[np.int64], size: int) -> bool:
    parts = (stamps[begin : begin + AT_ONCE + 1] for begin in range(0, len(stamps) - 1, AT_ONCE))
    return all(bool((np.diff(part) == size).all()) for part in parts)


def _spread(values: NDArray[np.float64], numbers: NDArray[np.int64], n: int) -> NDArray[np.float64]:
    found = np.full((n, values.shape[1]), np.nan)
    found[numbers] = values
    return found


def _one_frequency(table: SeriesTable, step: Step) -> None:
    """Refuse series whose own step is another."""
    for each in table.series:
        own = step_of([each.stamps], table.column.are) if len(each.stamps) > 2 else step
        if own != step and {own, step} != DAYS:  # of which some have weekends
            raise DataError(
                f"{each.place}: series {shown(each.name)} has a step of {own or 'no one length'}, others have {step}; "
                "give series of one frequency"
            )


def _explain(table: SeriesTable) -> None:
    """Why there is no step."""
    for each in table.series:
        gaps = np.diff(each.stamps)
        if len(gaps) < 2:
            continue
        usual = int(np.median(gaps))
        odd = np.flatnonzero(gaps % max(usual, 1))
        if len(odd):
            when = [table.column.written(int(each.stamps[odd[0] + k])) for k in (0, 1)]
            of = f" of series {shown(each.name)}" if each.name else ""
            local = ""
            if table.column.zoned and abs(int(gaps[odd[0]]) - usual) == UNITS["hour"]:
                local = " (daylight saving begins or ends there: write local dates without their zone)"
            raise DataError(
                f"{table.place(each.name, int(each.stamps[odd[0] + 1]))}: the times{of} are not evenly spaced: "
                f"{when[0]} is followed by {when[1]}{local}; correct them, or use {option('spacing', 'irregular')} "
                "with the gaps as an input"
            )
    raise DataError(f"{table.name}: there are too few times to determine the step between them; give more rows")
