"""The rows of a table in columns: each cell is turned into a number as soon as some rows were read, so that a large
table is held in few bytes per cell."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.core.front import option
from unrolled.data.files.cell_values import LARGEST, as_class, as_number, is_gap, is_number, shown
from unrolled.data.files.tables import Table
from unrolled.data.reading import names_of
from unrolled.data.time_series.reading import SeriesReading
from unrolled.data.time_series.stamp_forms import parse
from unrolled.data.time_series.stamps import DAY, Column, Stamps

PIECE = 1 << 15  # rows that are turned into numbers together
ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?")

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
        seen = np.asarray(~np.isnan(self.values).all(1))  # [T]
        return len(seen) - int(seen[::-1].argmax()) if seen.any() else 0

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


class NotPlain(Exception):
    """Stamps that are not all written in one plain way, which have to be looked at together."""


class PlainStamps:
    """Stamps in ISO 8601 without a zone, or whole numbers, piece by piece."""

    def __init__(self) -> None:
        self.pieces: list[Stamps] = []
        self.kind: str | None = None

    def add(self, cells: Sequence[Any]) -> None:
        kinds = set(map(type, cells))
        if kinds == {str} and all(map(ISO.fullmatch, cells)):
            kind, wanted = "text", "datetime64[us]"
        elif kinds == {datetime} and all(cell.tzinfo is None for cell in cells):
            kind, wanted = "times", "datetime64[us]"
        elif kinds == {int} or (kinds == {str} and all(map(str.isdecimal, cells)) and max(map(len, cells)) < 16):
            kind, wanted = "numbers", "int64"
        else:
            raise NotPlain
        if self.kind not in (None, kind):
            raise NotPlain
        self.kind = kind
        try:
            found = np.array(cells).astype(wanted) if kinds == {str} else np.array(cells, wanted)
        except (ValueError, OverflowError):
            raise NotPlain from None
        self.pieces.append(found.view(np.int64))

    def column(self) -> Column:
        stamps = np.concatenate([np.empty(0, np.int64), *self.pieces])
        self.pieces.clear()
        if self.kind != "numbers":
            return Column(stamps, "times")
        ends = parse([int(stamps.min()), int(stamps.max())], lambda _: "")
        if ends.are != "numbers":
            raise NotPlain
        return Column(stamps, "numbers", False, ends.form, ends.note)


class RowNumbers:
    """The numbers of rows, as runs of consecutive ones."""

    def __init__(self) -> None:
        self.rows, self.first, self.n = list[int](), list[int](), 0

    def extend(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if not self.rows or number - self.first[-1] != self.n - self.rows[-1]:
                self.rows.append(self.n)
                self.first.append(number)
            self.n += 1

    def __getitem__(self, row: int) -> int:
        at = bisect_right(self.rows, row) - 1
        return self.first[at] + row - self.rows[at]


class Rows:
    """The rows of a table in columns."""

    def __init__(self, table: Table, reading: SeriesReading) -> None:
        self.table, self.reading = table, reading
        self.target, self.past, self.known, self.static = (
            names_of(each) for each in (reading.target, reading.past, reading.future, reading.static)
        )
        try:
            self._read(plain=reading.time_format is None)
        except NotPlain:
            self._read(plain=False)

    def _read(self, plain: bool) -> None:
        """Every row, some at a time; `plain`: times are turned into stamps at once."""
        reading = self.reading
        wanted = [*self.target, *self.past, *self.known]
        extras = [name for name in (reading.time, reading.id, *self.static) if name is not None]
        self.numbers = RowNumbers()
        self.columns = {name: array("d") for name in wanted}
        self.times: list[Any] = []
        self.static_cells: dict[str, list[Any]] = {name: [] for name in self.static}
        self.ids, self.names, same = array("i"), dict[str, int](), dict[Any, Any]()
        stamps = PlainStamps() if plain else None
        rows = self.table.rows([*wanted, *extras])
        while some := list(islice(rows, PIECE)):
            first = self.numbers.n
            self.numbers.extend(number for number, _ in some)
            by_name = dict(zip([*wanted, *extras], zip(*(cells for _, cells in some))))
            for name in wanted:
                self.columns[name].extend(self._values(by_name[name], first, name))
            if reading.time is not None and stamps is not None:
                stamps.add(by_name[reading.time])
            elif reading.time is not None:
                self.times.extend(by_name[reading.time])
            if reading.id is not None:
                self._add_ids(by_name[reading.id], first)
            for name in self.static:
                self.static_cells[name].extend(same.setdefault((type(cell), cell), cell) for cell in by_name[name])
        n, time = self.numbers.n, reading.time
        if time is None:
            self.column = Column(np.arange(n, dtype=np.int64), "numbers")
        elif stamps is not None:
            self.column = stamps.column() if n else parse([], lambda _: "")
        else:
            self.column = parse(self.times, lambda i: self.place(i, time), reading.time_format)
        self.times = []

    def _values(self, cells: Sequence[Any], first: int, name: str) -> Any:
        """Cells as numbers, all at once where they are plain."""
        kinds = set(map(type, cells))
        if kinds == {str} and "_" not in "".join(cells):
            try:
                found = np.array(cells, np.float64)
            except ValueError:
                found = np.full(1, np.nan)
            if bool((np.abs(found) < LARGEST).all()):
                return found
        elif kinds <= {float, int, type(None)}:
            found = np.array(cells, np.float64)
            if not bool((np.abs(found) >= LARGEST).any()):
                return found
        return [self._number(cell, first + i, name) for i, cell in enumerate(cells)]

    def _number(self, cell: Any, row: int, name: str) -> float:
        return np.nan if is_gap(cell) else as_number(cell, self.place(row, name))

    def place(self, row: int, name: str | None = None) -> str:
        here = self.table.place(self.numbers[row])
        return here if name is None else f"{here}, column '{name}'"

    def series(self, notes: dict[str, None]) -> Iterator[Series]:
        """By id, in the order in which they first appear; each in the order of time."""
        column, order = self.column, self._order()
        ids, names = np.frombuffer(self.ids, np.int32), [*self.names] or [""]
        n = self.numbers.n
        bounds = [0, n] if not self.names else np.searchsorted(ids if order is None else ids[order], range(len(names)))
        arrays = [self._matrix(each) for each in (self.target, self.past, self.known)]
        if order is not None and len(names) == 1:
            notes[f"{self.table.name}: the rows were sorted by time"] = None
        self._tell_gaps(arrays[0], ((self.past, arrays[1]), (self.known, arrays[2])), notes)
        for k, name in enumerate(names):
            last = n if k + 1 == len(names) else int(bounds[k + 1])
            rows: Any = slice(int(bounds[k]), last) if order is None else order[int(bounds[k]) : last]
            stamps = column.stamps[rows] if self.reading.time is not None else np.arange(last - int(bounds[k]))
            where = range(n)[rows] if order is None else rows
            self._once(stamps, where, column, name)
            values, past, known = (each[rows] for each in arrays)
            found = Series(name, stamps, values, past, known, self._constants(where, name), self.place(int(where[0])))
            yield found.known_on()

    def _order(self) -> NDArray[np.int64] | None:
        """The rows by series and time; None: they are in that order already."""
        ids, stamps = np.frombuffer(self.ids, np.int32), self.column.stamps
        turn = np.diff(ids) if len(ids) else np.zeros(max(len(stamps) - 1, 0), np.int8)
        if bool(((turn > 0) | ((turn == 0) & (stamps[1:] >= stamps[:-1]))).all()):
            return None
        return np.lexsort((stamps, ids)) if len(ids) else np.argsort(stamps, kind="stable")

    def _tell_gaps(self, values: Numbers, beside: Any, notes: dict[str, None]) -> None:
        """Covariates that are missing where there is a value."""
        seen = ~np.isnan(values).all(1)
        for names, known in beside:
            for d, name in enumerate(names):
                if n := int((np.isnan(known[:, d]) & seen).sum()):
                    few = "1 value" if n == 1 else f"{n:,} values"
                    notes[f"{self.table.name}: {few} of the covariate '{name}' missing: taken as its mean"] = None

    def _add_ids(self, cells: Sequence[Any], first: int) -> None:
        known = dict[Any, int]()
        for cell in dict.fromkeys(cells):
            here = self.place(first + cells.index(cell), self.reading.id)
            if is_gap(cell) and not (type(cell) is str and cell.strip()):
                raise DataError(f"{here}: found {shown(cell)}, expected the name of a series; fill it in")
            name = cell.strip() if type(cell) is str else as_class(cell, here)
            known[cell] = self.names.setdefault(str(name), len(self.names))
        self.ids.extend(map(known.__getitem__, cells))

    def _matrix(self, names: Sequence[str]) -> Numbers:
        """[N, n]"""
        found = [np.frombuffer(self.columns[name], np.float64) for name in names]
        if len(found) == 1:
            return found[0][:, None]
        return np.stack(found, axis=1) if found else np.empty((self.numbers.n, 0))

    def _once(self, stamps: Stamps, rows: Sequence[int], column: Column, name: str) -> None:
        twice = np.flatnonzero(np.diff(stamps) == 0)
        if len(twice):
            row = int(rows[twice[0] + 1])
            of = f" of series {shown(name)}" if name else ""
            apart = (
                ""
                if self.reading.id is not None
                else f", or name the column that identifies series with {option('id')}"
            )
            stamp = int(column.stamps[row])
            clock = column.are == "times" and not column.zoned and stamp % DAY
            local = "local times repeat an hour when daylight saving ends: write them with their zone"
            often = "twice" if len(twice) == 1 else f"again, one of {len(twice)} such"
            raise DataError(
                f"{self.place(row, self.reading.time)}: the time {column.written(stamp)}{of} is there {often}; keep "
                f"one row of it{f' ({local})' if clock else ''}{apart}"
            )

    def _constants(self, rows: Sequence[int], name: str) -> dict[str, str | float]:
        found: dict[str, str | float] = {}
        for column in self.static:
            cells = [self.static_cells[column][int(row)] for row in rows]
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
