"""Series in a table: a row is one time, of one series or of each of several columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError, MissingColumn, UsageError, some
from unrolled.core.front import option
from unrolled.data.files.cell_values import as_number, is_gap, is_number
from unrolled.data.files.tables import Table
from unrolled.data.reading import Names, as_names, names_of
from unrolled.data.time_series.reading import SeriesReading
from unrolled.data.time_series.rows import Rows
from unrolled.data.time_series.rows import Series as Series
from unrolled.data.time_series.stamp_forms import are_times, parse
from unrolled.data.time_series.stamps import Column

TIMES = ("ds", "date", "datetime", "timestamp", "ts", "time", "month", "year", "day", "week", "quarter", "period",
         "hour")  # fmt: skip
IDS = ("unique_id", "series_id", "series", "item_id", "id", "item", "store", "station", "sensor", "group")
LOOKED_AT = 1000  # rows, to find out what a column holds
LOOKED_THROUGH = 200_000  # rows, to find out which column tells series apart


@dataclass(frozen=True, eq=False)
class SeriesTable:
    """All series of a table, and how they were found."""

    table: Table
    series: list[Series]
    reading: SeriesReading
    column: Column
    """the kind of the stamps"""
    notes: dict[str, None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.table.name

    def place(self, name: str, stamp: int) -> str:
        """Where a time of a series stands; it is looked for, because rows are not kept."""
        time, series = self.reading.time, self.reading.id
        assert time is not None
        rows = list(self.table.rows([time, *([] if series is None else [series])]))
        stamps = parse([cells[0] for _, cells in rows], lambda _: "", self.reading.time_format).stamps
        for at in np.flatnonzero(stamps == stamp):
            number, cells = rows[at]
            if series is None or name == (own := str(cells[1]).strip()) or name.startswith(f"{own} / "):
                return f"{self.table.place(number)}, column '{time}'"
        return self.name


def open_series(table: Table, reading: SeriesReading, target_needed: bool = True) -> SeriesTable:
    """The series of a table; columns that are not named are chosen by name and content, and reported."""
    names = table.columns()
    found = settled(table, names, reading)
    rows = Rows(table, found)
    column, notes = rows.column, dict(table.notes)
    if column.note:
        notes[f"{table.name}: {column.note}"] = None
    if column.form is not None:
        found = found.updated({"time_format": column.form})
    for what, was, now in (("times", reading.time, found.time), ("series", reading.id, found.id)):
        if was is None and now is not None:
            how = "name" if now.lower() in (TIMES if what == "times" else IDS) else "its content"
            notes[f"{table.name}: the column of {what} is '{now}', chosen by {how}"] = None
    if found.time is None and len(names) > 1:
        notes[f"{table.name}: there is no column of times, so the rows are the steps, in their order"] = None
    chosen = names_of(found.target)
    if reading.target is None and len(chosen) == 1:
        notes[f"{table.name}: the target is {chosen[0]}, chosen because it holds numbers"] = None
    elif reading.target is None:
        notes[f"{table.name}: the targets are {some(chosen)}, chosen because they hold numbers"] = None
    series = list(rows.series(notes))
    if reading.target is None:
        _tell_of_future(table, series, chosen, notes)
    if found.channels == "separate" and len(names_of(found.target)) > 1:
        series = [one for each in series for one in _apart(each, names_of(found.target), found.id is not None)]
    if target_needed and not any(each.n_known for each in series):
        raise DataError(
            f"{table.name}: there are no numbers in {some(names_of(found.target))}, so there is nothing to learn"
        )
    return SeriesTable(table, series, found, column, notes)


def _tell_of_future(table: Table, series: Sequence[Series], names: Sequence[str], notes: dict[str, None]) -> None:
    """Columns that continue where others have ended may be known of the future."""
    ends = np.array([[_n_known(values) for values in each.values.T] for each in series])  # [n, D]
    ended = (ends < ends.max(1, keepdims=True)).all(0) if len(series) else np.zeros(len(names), bool)
    if ended.any() and (ends[:, ~ended] == ends.max(1, keepdims=True)).all():
        of, more = ([name for name, is_over in zip(names, ended) if is_over == over] for over in (True, False))
        options = f"{option('target', ','.join(of))} {option('future', ','.join(more))}"
        have = f"{some(more)} {'has' if len(more) == 1 else 'have'} values after the last one of {some(of)}"
        notes[f"{table.name}: {have}; if they are known beforehand, give {options}"] = None


def _n_known(values: NDArray[np.float64]) -> int:
    seen = np.flatnonzero(~np.isnan(values))
    return int(seen[-1]) + 1 if len(seen) else 0


# ---- which columns


def settled(table: Table, names: Sequence[str], reading: SeriesReading) -> SeriesReading:
    """With the columns that are not named chosen."""
    for setting in ("target", "time", "id", "past", "future", "static"):
        for name in names_of(dict(reading)[setting], names):
            if name not in names:
                asked = option("series.time" if setting == "time" else setting)
                raise MissingColumn(table.name, name, asked, names)
    kinds = kinds_of(table, names)
    taken = {
        n for wanted in (reading.target, reading.past, reading.future, reading.static) for n in names_of(wanted, names)
    }
    free = {name.lower(): name for name in reversed(names) if name not in taken}
    if reading.time is None and (both := year_and_month(free.values(), kinds)):
        raise UsageError(
            f"{table.name}: columns '{both[0]}' and '{both[1]}' hold the time together; write it in one column, such "
            f"as 2024-05, or name another one with {option('series.time')}"
        )
    time = reading.time or next((free[name] for name in TIMES if name in free), None)
    if time is None:  # or the only column that looks like times
        dates = [name for name in names if name not in taken and kinds[name] == "times"]
        if len(dates) > 1:
            raise UsageError(
                f"{table.name}: columns {some(dates)} hold times; name the one of the series with "
                f"{option('series.time')}"
            )
        time = dates[0] if dates else None
    series = reading.id or next(
        (free[n] for n in IDS if n in free and free[n] != time and kinds[free[n]] != "times"), None
    )
    if reading.id is None and series is not None and not _comes_again(table, series):
        series = None
    if series is None and time is not None:
        series = _identifies(table, time, [name for name in free.values() if kinds[name] == "other"])
    used = taken | {time, series}
    if reading.target is not None:
        target: Names | None = as_names(names_of(reading.target, names))
    else:
        left = [name for name in names if name not in used and kinds[name] == "numbers"]
        if not left:
            _explain_no_target(table, [name for name in names if name not in used], names)
        target = as_names(left)
    return reading.updated({"target": target, "time": time, "id": series})


def year_and_month(names: Iterable[str], kinds: Mapping[str, str]) -> list[str]:
    """The columns of numbers that are a time together; none where another column may be one."""
    free = {name.lower(): name for name in names}
    both = [free[name] for name in ("year", "month") if name in free and kinds[free[name]] == "numbers"]
    return both if len(both) == 2 and not any(name in free for name in TIMES[: TIMES.index("month")]) else []


def _identifies(table: Table, time: str, texts: Sequence[str]) -> str | None:
    """The one column of texts that distinguishes rows of the same time."""
    if not texts:
        return None
    rows = [cells for _, cells in islice(table.rows([time, *texts]), LOOKED_THROUGH)]
    if len({cells[0] for cells in rows}) == len(rows):
        return None
    found = [
        name
        for i, name in enumerate(texts, 1)
        if len({(cells[0], cells[i]) for cells in rows}) == len(rows)
        and 2 * len({cells[i] for cells in rows}) <= len(rows)
    ]
    return found[0] if len(found) == 1 else None


def _explain_no_target(table: Table, left: Sequence[str], names: Sequence[str]) -> None:
    """By the first cell that is no number, of the first column that may have been meant."""
    hint = f"no column of numbers is left to forecast; it has {some(names)}; name one with {option('target')}"
    for number, cells in table.rows(left[:1]) if left else ():
        if not is_gap(cells[0]) and not is_number(cells[0]):
            try:
                as_number(cells[0], f"{table.place(number)}, column '{left[0]}'")
            except DataError as error:
                raise DataError(f"{error} ({hint})") from None
    raise UsageError(f"{table.name}: {hint}")


def kinds_of(table: Table, names: Sequence[str]) -> dict[str, str]:
    """What each column holds in the first rows: numbers, times, or other."""
    rows = [cells for _, cells in islice(table.rows(names), LOOKED_AT)]
    return {name: _kind([cells[i] for cells in rows]) for i, name in enumerate(names)}


def _kind(cells: Sequence[Any]) -> str:
    filled = [cell for cell in cells if not is_gap(cell)]
    numbers = sum(is_number(cell) for cell in filled)
    if filled and numbers > 0.9 * len(filled):  # a bad cell does not make another column of it
        return "numbers"
    return "times" if filled and are_times(filled[:20]) else "other"


def _comes_again(table: Table, name: str) -> bool:
    cells = [cells[0] for _, cells in islice(table.rows([name]), LOOKED_AT)]
    return len(set(map(str, cells))) < len(cells)


def _apart(series: Series, names: Sequence[str], has_id: bool) -> Iterator[Series]:
    """Each channel as a series of its own."""
    for d, name in enumerate(names):
        called = f"{series.name} / {name}" if has_id else name
        yield replace(series, name=called, values=series.values[:, d : d + 1])
