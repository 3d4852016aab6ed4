"""Series in a table: a row is one time, of one series or of each of several columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError, MissingColumn, UsageError, some
from unrolled.core.front import option
from unrolled.data.files.cell_values import LARGEST, as_class, as_number, is_gap, is_number, shown
from unrolled.data.files.tables import Table
from unrolled.data.reading import Names, as_names, names_of
from unrolled.data.time_series.reading import SeriesReading
from unrolled.data.time_series.stamp_forms import are_times, parse
from unrolled.data.time_series.stamps import Column, Stamps

TIMES = ("ds", "date", "datetime", "timestamp", "time", "month", "year", "day", "week", "quarter", "period", "hour")
IDS = ("unique_id", "series_id", "series", "item_id", "id", "item", "store", "station", "sensor", "group")
LOOKED_AT = 1000  # rows, to find out what a column holds

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Series:
    """One series as it stands in a table, in the order of time; NaN is a missing value."""

    name: str
    stamps: Stamps  # [T]
    values: Numbers  # [T, D]
    past: Numbers  # [T, P]
    known: Numbers  # [T, K]
    static: Mapping[str, str | float]
    place: str
    """where it begins"""

    @property
    def n_known(self) -> int:
        """Rows up to the last one that has a value; those behind it are known of the future alone."""
        seen = np.flatnonzero(~np.isnan(self.values).all(1))
        return int(seen[-1]) + 1 if len(seen) else 0

    def known_on(self) -> Series:
        """Without the rows of the future from the first on that lacks a covariate, which are not known."""
        n = self.n_known
        lacks = np.flatnonzero(np.isnan(self.known[n:]).any(1))
        if not len(lacks):
            return self
        end = n + int(lacks[0])
        return replace(
            self, stamps=self.stamps[:end], values=self.values[:end], past=self.past[:end], known=self.known[:end]
        )


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
    rows = _Rows(table, found)
    column, notes = rows.stamps(), dict(table.notes)
    if column.note:
        notes[f"{table.name}: {column.note}"] = None
    if column.form is not None:
        found = found.updated({"time_format": column.form})
    for what, was, now in (("time", reading.time, found.time), ("id", reading.id, found.id)):
        if was is None and now is not None:
            notes[
                f"{table.name}: the column of {'times' if what == 'time' else 'series'} is '{now}', chosen by name"
            ] = None
    if found.time is None and len(names) > 1:
        notes[f"{table.name}: there is no column of times, so the rows are the steps, in their order"] = None
    if reading.target is None:
        notes[f"{table.name}: the target is {some(names_of(found.target))}, chosen because it holds numbers"] = None
    series = list(rows.series(column, notes))
    if found.channels == "separate" and len(names_of(found.target)) > 1:
        series = [one for each in series for one in _apart(each, names_of(found.target), found.id is not None)]
    if target_needed and not any(each.n_known for each in series):
        raise DataError(
            f"{table.name}: there are no numbers in {some(names_of(found.target))}, so there is nothing to learn"
        )
    return SeriesTable(table, series, found, column, notes)


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
    used = taken | {time, series}
    if reading.target is not None:
        target: Names | None = as_names(names_of(reading.target, names))
    else:
        left = [name for name in names if name not in used and kinds[name] == "numbers"]
        if not left:
            _explain_no_target(table, [name for name in names if name not in used], names)
        target = as_names(left)
    return reading.updated({"target": target, "time": time, "id": series})


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


# ---- rows


class _Rows:
    """The rows of a table in columns."""

    def __init__(self, table: Table, reading: SeriesReading) -> None:
        self.table, self.reading = table, reading
        self.target, self.past, self.known, self.static = (
            names_of(each) for each in (reading.target, reading.past, reading.future, reading.static)
        )
        wanted = [*self.target, *self.past, *self.known]
        extras = [name for name in (reading.time, reading.id, *self.static) if name is not None]
        self.numbers: list[int] = []  # of rows
        self.columns = {name: array("d") for name in wanted}
        self.cells: dict[str, list[Any]] = {name: [] for name in extras}
        for number, cells in table.rows([*wanted, *extras]):
            self.numbers.append(number)
            for name, cell in zip(wanted, cells):
                self.columns[name].append(self._number(cell, number, name))
            for name, cell in zip(extras, cells[len(wanted) :]):
                self.cells[name].append(cell)

    def _number(self, cell: Any, number: int, name: str) -> float:
        if type(cell) is str:  # quickly, as most cells are
            try:
                value = float(cell)
            except ValueError:
                value = np.nan
            if -LARGEST < value < LARGEST and "_" not in cell:
                return value
        return np.nan if is_gap(cell) else as_number(cell, f"{self.table.place(number)}, column '{name}'")

    def place(self, row: int, name: str | None = None) -> str:
        here = self.table.place(self.numbers[row])
        return here if name is None else f"{here}, column '{name}'"

    def stamps(self) -> Column:
        """The time of each row; without a column of times its number."""
        if self.reading.time is None:
            return Column(np.arange(len(self.numbers), dtype=np.int64), "numbers")
        cells = self.cells[self.reading.time]
        return parse(cells, lambda i: self.place(i, self.reading.time), self.reading.time_format)

    def series(self, column: Column, notes: dict[str, None]) -> Iterator[Series]:
        """By id, in the order in which they first appear; each in the order of time."""
        ids, names = self._ids()
        order = np.lexsort((column.stamps, ids))
        bounds = np.flatnonzero(np.diff(ids[order], prepend=-1, append=-1))
        arrays = [self._matrix(each) for each in (self.target, self.past, self.known)]
        if (np.diff(order) < 0).any() and len(names) == 1:
            notes[f"{self.table.name}: the rows were sorted by time"] = None
        self._tell_gaps(arrays[0], ((self.past, arrays[1]), (self.known, arrays[2])), notes)
        for k, name in enumerate(names):
            rows = order[bounds[k] : bounds[k + 1]]
            stamps = column.stamps[rows] if self.reading.time is not None else np.arange(len(rows), dtype=np.int64)
            self._once(stamps, rows, column, name)
            values, past, known = (each[rows] for each in arrays)
            found = Series(name, stamps, values, past, known, self._constants(rows, name), self.place(int(rows[0])))
            yield found.known_on()

    def _tell_gaps(self, values: Numbers, beside: Any, notes: dict[str, None]) -> None:
        """Covariates that are missing where there is a value."""
        seen = ~np.isnan(values).all(1)
        for names, known in beside:
            for d, name in enumerate(names):
                if n := int((np.isnan(known[:, d]) & seen).sum()):
                    few = "1 value" if n == 1 else f"{n:,} values"
                    notes[f"{self.table.name}: {few} of the covariate '{name}' missing: taken as its mean"] = None

    def _ids(self) -> tuple[NDArray[np.int64], list[str]]:
        if self.reading.id is None:
            return np.zeros(len(self.numbers), np.int64), [""]
        known: dict[str, int] = {}
        cells = self.cells[self.reading.id]
        ids = np.empty(len(cells), np.int64)
        for i, cell in enumerate(cells):
            if is_gap(cell) and not (type(cell) is str and cell.strip()):
                here = self.place(i, self.reading.id)
                raise DataError(f"{here}: found {shown(cell)}, expected the name of a series; fill it in")
            name = cell.strip() if type(cell) is str else as_class(cell, self.place(i, self.reading.id))
            ids[i] = known.setdefault(str(name), len(known))
        return ids, list(known)

    def _matrix(self, names: Sequence[str]) -> Numbers:
        """[N, n]"""
        if not names:
            return np.empty((len(self.numbers), 0))
        return np.stack([np.frombuffer(self.columns[name], np.float64) for name in names], axis=1)

    def _once(self, stamps: Stamps, rows: NDArray[np.int64], column: Column, name: str) -> None:
        twice = np.flatnonzero(np.diff(stamps) == 0)
        if len(twice):
            row = int(rows[twice[0] + 1])
            of = f" of series {shown(name)}" if name else ""
            apart = (
                ""
                if self.reading.id is not None
                else f", or name the column that identifies series with {option('id')}"
            )
            raise DataError(
                f"{self.place(row, self.reading.time)}: the time {column.written(int(column.stamps[row]))}{of} is "
                f"there {'twice' if len(twice) == 1 else f'again, one of {len(twice)} such'}; keep one row of it "
                f"(local times repeat an hour when daylight saving ends: write them with their zone){apart}"
            )

    def _constants(self, rows: NDArray[np.int64], name: str) -> dict[str, str | float]:
        found: dict[str, str | float] = {}
        for column in self.static:
            cells = [self.cells[column][int(row)] for row in rows]
            here = self.place(int(rows[0]), column)
            value: str | float = as_number(cells[0], here) if is_number(cells[0]) else as_class(cells[0], here)
            other = next((i for i, cell in enumerate(cells) if str(cell).strip() != str(cells[0]).strip()), None)
            if other is not None:
                raise DataError(
                    f"{self.place(int(rows[other]), column)}: found {shown(cells[other])}, but series "
                    f"{shown(name)} has {shown(cells[0])} before; a static covariate has one value per series"
                )
            found[column] = value
        return found


def _apart(series: Series, names: Sequence[str], has_id: bool) -> Iterator[Series]:
    """Each channel as a series of its own."""
    for d, name in enumerate(names):
        called = f"{series.name} / {name}" if has_id else name
        yield replace(series, name=called, values=series.values[:, d : d + 1])
