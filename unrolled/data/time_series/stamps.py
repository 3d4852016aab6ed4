"""Time stamps of a column: how they are written, how far apart they are, and which come next.

| written | example | held as |
|---|---|---|
| ISO 8601 | 2024-05-31, 2024-05-31 12:00, 2024-05-31T12:00:00+02:00 | microseconds since 1970, zones converted to UTC |
| year and month, quarter | 2024-05, 2024Q2 | the first day of it |
| with slashes or dots | 31/12/2024, 12/31/2024, 31.12.2024 | likewise; the whole column tells day from month |
| whole numbers | 1749, 17 | as they are: years or steps |

Months, quarters and years are steps of the calendar; everything else is a fixed number of microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.core.front import option
from unrolled.data.files.cell_values import is_gap, is_number, shown

Stamps = NDArray[np.int64]

SECOND = 1_000_000
DAY = 86_400 * SECOND
EPOCH = datetime(1970, 1, 1)
UNITS = {"week": 7 * DAY, "day": DAY, "hour": 3600 * SECOND, "minute": 60 * SECOND, "second": SECOND,
         "millisecond": 1000, "microsecond": 1}  # fmt: skip
CALENDAR = {"year": 12, "quarter": 3, "month": 1}  # in months
SEASONS: dict[str, tuple[int, ...]] = {
    "month": (12,), "quarter": (4,), "week": (52,), "day": (7, 365), "hour": (24, 168), "minute": (60, 1440),
    "second": (60, 3600),
}  # fmt: skip
"""Steps after which a series of one step a unit may repeat itself."""

_MONTH = re.compile(r"(\d{4})[-/](\d{1,2})")
_QUARTER = re.compile(r"(\d{4})[- ]?[Qq]([1-4])")
_NUMBERS = re.compile(r"(\d{1,2})[/.](\d{1,2})[/.](\d{4})(?:[ T](.+))?")
_YEAR_FIRST = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})(\D.*)?")


class Step(NamedTuple):
    """From one stamp to the next: a number of months, of microseconds, or of whole numbers that are no times."""

    size: int
    of: Literal["months", "microseconds", "numbers"]

    def __str__(self) -> str:
        if self.of == "numbers":
            return f"{self.size}" if self.size != 1 else "1 (whole numbers)"
        units = CALENDAR if self.of == "months" else UNITS
        name, unit = next((name, unit) for name, unit in units.items() if self.size % unit == 0)
        n = self.size // unit
        return f"1 {name}" if n == 1 else f"{n} {name}s"

    def after(self, stamp: int, n: int) -> list[int]:
        """The n stamps that follow one."""
        return [self.moved(stamp, k) for k in range(1, n + 1)]

    def moved(self, stamp: int, n: int) -> int:
        """The stamp n steps on; a month keeps the day where it has it, its last day otherwise."""
        if self.of != "months":
            return stamp + n * self.size
        then = _datetime(stamp)
        last = _is_last_day(then)
        months = then.year * 12 + then.month - 1 + n * self.size
        year, month = divmod(months, 12)
        end = _days_in(year, month + 1)
        day = end if last else min(then.day, end)
        return _microseconds(then.replace(year=year, month=month + 1, day=day))

    def between(self, first: int, stamps: Stamps) -> NDArray[np.float64]:
        """How many steps the stamps are behind the first; a whole number where they are on the grid."""
        if self.of != "months":
            return (stamps - first) / self.size
        return (months_of(stamps) - months_of(np.array([first], np.int64))[0]) / self.size

    def seasons(self) -> tuple[int, ...]:
        """Steps after which such series may repeat themselves."""
        if self.of == "numbers":
            return ()
        units = CALENDAR if self.of == "months" else UNITS
        name, unit = next((name, unit) for name, unit in units.items() if self.size % unit == 0)
        found = []
        for season in SEASONS.get(name, ()):
            n, rest = divmod(season * unit, self.size)
            found += [n] if rest == 0 and n > 1 else []
        if name == "minute" and self.size > unit:  # of half hours a day and a week
            found = [n for length in (DAY, 7 * DAY) if length % self.size == 0 and (n := length // self.size) > 1]
        return tuple(found)


class Column(NamedTuple):
    """The stamps of a column, in the order of its rows."""

    stamps: Stamps
    are: Literal["times", "numbers"]
    zoned: bool = False  # they were written with a zone, and are in UTC

    def written(self, stamp: int) -> str:
        return written(stamp, self.are, self.zoned)


def written(stamp: int, are: str, zoned: bool = False) -> str:
    """A stamp as people write it.

    >>> written(0, "times"), written(3_600_000_000, "times", True), written(1749, "numbers")
    ('1970-01-01', '1970-01-01 01:00:00+00:00', '1749')
    """
    if are == "numbers":
        return str(stamp)
    then = _datetime(stamp)
    if zoned:
        return then.replace(tzinfo=UTC).isoformat(" ")
    return then.date().isoformat() if stamp % DAY == 0 else then.isoformat(" ")


def parse(cells: Sequence[Any], place: Callable[[int], str], form: str | None = None) -> Column:
    """The stamps of all cells of a column; a bad one is reported with its row. `form` is as strptime takes it."""
    empty = next((i for i, cell in enumerate(cells) if is_gap(cell)), None)
    if empty is not None:
        raise DataError(f"{place(empty)}: found {shown(cells[empty])}, expected a time stamp; fill it in")
    if form is None and len(cells) and all(_is_whole(cell) for cell in cells):
        return Column(np.array([int(float(cell)) for cell in cells], np.int64), "numbers")
    read = _reader(cells, place, form)
    found, zones = np.empty(len(cells), np.int64), set[bool]()
    for i, cell in enumerate(cells):
        then = read(cell, i)
        zones.add(then.tzinfo is not None)
        if len(zones) > 1:
            raise DataError(
                f"{place(i)}: found {shown(cell)}, but other time stamps of this column are written "
                f"{'with' if then.tzinfo is None else 'without'} a time zone; write all of them the same way"
            )
        found[i] = _microseconds(then.astimezone(UTC).replace(tzinfo=None) if then.tzinfo is not None else then)
    return Column(found, "times", zones == {True})


def parse_one(text: Any, column: Column, what: str) -> int:
    """A stamp that an option names, in the kind of a column's."""
    try:
        found = parse([text], lambda _: what)
    except DataError as error:
        raise DataError(f"{error}") from None
    if found.are != column.are:
        kind = "an integer" if column.are == "numbers" else "a time such as 2024-05-31 12:00"
        raise DataError(f"{what}: found {shown(text)}, expected {kind}, as in the column of times")
    return int(found.stamps[0])


def _is_whole(cell: Any) -> bool:
    return is_number(cell) and float(cell).is_integer() and abs(float(cell)) < 2**53


def _reader(cells: Sequence[Any], place: Callable[[int], str], form: str | None) -> Callable[[Any, int], datetime]:
    if form is not None:
        return lambda cell, i: _by_form(cell, form, place(i))
    day_first = _day_first(cells, place)

    def read(cell: Any, i: int) -> datetime:
        if isinstance(cell, datetime):
            return cell
        if isinstance(cell, date):
            return datetime(cell.year, cell.month, cell.day)
        if isinstance(cell, np.datetime64):
            return _datetime(int(cell.astype("datetime64[us]").astype(np.int64)))
        try:
            return _from_text(str(cell).strip(), day_first)
        except ValueError:
            hint = f"write it as 2024-05-31 or 2024-05-31 12:00, or give its format with {option('time_format')}"
            raise DataError(f"{place(i)}: found {shown(cell)}, expected a time stamp; {hint}") from None

    return read


def _by_form(cell: Any, form: str, place: str) -> datetime:
    try:
        return datetime.strptime(str(cell).strip(), form)
    except ValueError:
        given = option("time_format", form)
        raise DataError(f"{place}: found {shown(cell)}, which does not match the format {given}") from None


def _from_text(text: str, day_first: bool) -> datetime:
    """
    >>> _from_text("2024Q2", False), _from_text("31.12.2024", True)
    (datetime.datetime(2024, 4, 1, 0, 0), datetime.datetime(2024, 12, 31, 0, 0))
    """
    if found := _MONTH.fullmatch(text):
        return datetime(int(found[1]), int(found[2]), 1)
    if found := _QUARTER.fullmatch(text):
        return datetime(int(found[1]), 3 * int(found[2]) - 2, 1)
    if found := _YEAR_FIRST.fullmatch(text):
        text = f"{found[1]}-{int(found[2]):02}-{int(found[3]):02}{found[4] or ''}"
    elif found := _NUMBERS.fullmatch(text):
        day, month = (found[1], found[2]) if day_first else (found[2], found[1])
        rest = f" {found[4]}" if found[4] else ""
        text = f"{found[3]}-{int(month):02}-{int(day):02}{rest}"
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}[ T]\d:\d{2}(:\d{2})?", text):  # an hour of one digit
        text = f"{text[:11]}0{text[11:]}"
    return datetime.fromisoformat(text)


def _day_first(cells: Sequence[Any], place: Callable[[int], str]) -> bool:
    """Whether 1/2/2024 is the first of February: dots always, slashes by a number above 12 in the column."""
    first, second, seen = False, False, None
    for i, cell in enumerate(cells):
        found = _NUMBERS.fullmatch(cell.strip()) if isinstance(cell, str) else None
        if found is None:
            continue
        if "." in cell:
            return True
        seen = i if seen is None else seen
        first, second = first or int(found[1]) > 12, second or int(found[2]) > 12
        if first and second:
            raise DataError(
                f"{place(i)}: found {shown(cell)}, but other rows have day and month the other way round; write all "
                "as 2024-05-31"
            )
    if seen is not None and not first and not second:
        forms = f"{option('time_format', '%d/%m/%Y')} or {option('time_format', '%m/%d/%Y')}"
        raise DataError(f"{place(seen)}: {shown(cells[seen])} may have the day or the month first; give {forms}")
    return first


def _datetime(stamp: int) -> datetime:
    return EPOCH + timedelta(microseconds=int(stamp))


def _microseconds(then: datetime) -> int:
    passed = then - EPOCH
    return (passed.days * 86_400 + passed.seconds) * SECOND + passed.microseconds


def _days_in(year: int, month: int) -> int:
    following = datetime(year + month // 12, month % 12 + 1, 1)
    return (following - timedelta(days=1)).day


def _is_last_day(then: datetime) -> bool:
    return then.day == _days_in(then.year, then.month) and then.day > 27


def months_of(stamps: Stamps) -> Stamps:
    """The month of each stamp, counted from January 1970."""
    return stamps.view("datetime64[us]").astype("datetime64[M]").astype(np.int64)


def step_of(series: Sequence[Stamps], are: str) -> Step | None:
    """The step that all series have in common, gaps left aside; None: they are spaced irregularly.

    Each series is sorted and without copies. The step is the most frequent difference, and every other one must be a
    multiple of it.
    """
    series = [stamps for stamps in series if len(stamps) > 1]
    if not series:
        return Step(1, "numbers") if are == "numbers" else None
    gaps, counts = np.unique(np.concatenate([np.diff(stamps) for stamps in series]), return_counts=True)
    if are == "times" and gaps[int(counts.argmax())] >= 28 * DAY and (months := _in_months(series)) is not None:
        return Step(months, "months")
    size = int(gaps[int(counts.argmax())])
    if bool((gaps % size).any()):
        return None
    return Step(size, "numbers" if are == "numbers" else "microseconds")


def _in_months(series: Sequence[Stamps]) -> int | None:
    """The step in whole months, where all stamps are at the same place of their month, or at its last day."""
    sizes: list[NDArray[np.int64]] = []
    for stamps in series:
        months = stamps.view("datetime64[us]").astype("datetime64[M]")
        numbers = months.astype(np.int64)
        inside = stamps - months.astype("datetime64[us]").astype(np.int64)  # [T] since the month began
        left = (months + 1).astype("datetime64[us]").astype(np.int64) - stamps
        if np.unique(inside).size > 1 and np.unique(left).size > 1:
            return None
        sizes.append(np.diff(numbers))
    found, counts = np.unique(np.concatenate(sizes), return_counts=True)
    size = int(found[int(counts.argmax())])
    return size if size > 0 and not bool((found % size).any()) else None
