"""Time stamps of a column: how far apart they are, and which come next (stamp_forms.py: how they are written).

Months, quarters and years are steps of the calendar, and so are business days (Monday to Friday); everything else is a
fixed number of microseconds.
"""

from __future__ import annotations

import calendar
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError

Stamps = NDArray[np.int64]

SECOND = 1_000_000
DAY = 86_400 * SECOND
EPOCH = datetime(1970, 1, 1)
MONDAY = -3 * DAY  # 1970 began on a Thursday
WEEKDAYS = 5
WEEKENDS = 3  # without any stamp, so that days are business days
AT_ONCE = 1 << 20  # stamps that are looked at together
UNITS = {"week": 7 * DAY, "day": DAY, "hour": 3600 * SECOND, "minute": 60 * SECOND, "second": SECOND,
         "millisecond": 1000, "microsecond": 1}  # fmt: skip
CALENDAR = {"year": 12, "quarter": 3, "month": 1}  # in months
SEASONS: dict[str, tuple[int, ...]] = {
    "month": (12,), "quarter": (4,), "week": (52,), "day": (7, 365), "hour": (24, 168), "minute": (60, 1440),
    "second": (60, 3600),
}  # fmt: skip
"""Steps after which a series of one step a unit may repeat itself."""


StepOf = Literal["months", "business days", "microseconds", "numbers"]


class Step(NamedTuple):
    """From one stamp to the next: a number of months, of business days, of microseconds, or of numbers that are no
    times."""

    size: int
    of: StepOf

    def __str__(self) -> str:
        if self.of == "business days":
            return "1 business day"
        if self.of == "numbers":
            return f"{self.size}" if self.size != 1 else "1 (whole numbers)"
        units = CALENDAR if self.of == "months" else UNITS
        name, unit = next((name, unit) for name, unit in units.items() if self.size % unit == 0)
        n = self.size // unit
        return f"1 {name}" if n == 1 else f"{n} {name}s"

    def after(self, stamp: int, n: int) -> list[int]:
        """The n stamps that follow one."""
        try:
            found = [self.moved(stamp, k) for k in range(1, n + 1)]
            if found and self.of != "numbers":
                datetime_of(found[-1])
        except (ValueError, OverflowError):
            raise DataError(f"{n} steps of {self} after {datetime_of(stamp)} are beyond the year 9999") from None
        return found

    def moved(self, stamp: int, n: int) -> int:
        """The stamp n steps on; a month keeps the day where it has it, its last day otherwise."""
        if self.of == "business days":
            return stamp + DAY * (_day_of_business(business_days_of(np.array([stamp], np.int64))[0] + n) - stamp // DAY)
        if self.of != "months":
            return stamp + n * self.size
        then = datetime_of(stamp)
        last = _is_last_day(then)
        months = then.year * 12 + then.month - 1 + n * self.size
        year, month = divmod(months, 12)
        end = _days_in(year, month + 1)
        day = end if last else min(then.day, end)
        return microseconds_of(then.replace(year=year, month=month + 1, day=day))

    def between(self, first: int, stamps: Stamps) -> NDArray[np.float64]:
        """How many steps the stamps are behind the first; a whole number where they are on the grid."""
        if self.of == "business days":
            first_day = business_days_of(np.array([first], np.int64))[0]
            return business_days_of(stamps) - first_day + (stamps - first) % DAY / DAY
        if self.of != "months":
            return (stamps - first) / self.size
        return (months_of(stamps) - months_of(np.array([first], np.int64))[0]) / self.size

    def seasons(self) -> tuple[int, ...]:
        """Steps after which such series may repeat themselves."""
        if self.of == "business days":
            return (WEEKDAYS, 52 * WEEKDAYS)
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
    form: str | None = None  # how they were written, where that had to be found out (stamp_forms.py)
    note: str = ""  # which is to be told

    def written(self, stamp: int) -> str:
        return written(stamp, self.are, self.zoned)


def written(stamp: int, are: str, zoned: bool = False) -> str:
    """A stamp as people write it.

    >>> written(0, "times"), written(3_600_000_000, "times", True), written(1749, "numbers")
    ('1970-01-01', '1970-01-01 01:00:00+00:00', '1749')
    """
    if are == "numbers":
        return str(stamp)
    then = datetime_of(stamp)
    if zoned:
        return then.replace(tzinfo=UTC).isoformat(" ")
    return then.date().isoformat() if stamp % DAY == 0 else then.isoformat(" ")


def datetime_of(stamp: int) -> datetime:
    return EPOCH + timedelta(microseconds=int(stamp))


def microseconds_of(then: datetime) -> int:
    passed = then - EPOCH
    return (passed.days * 86_400 + passed.seconds) * SECOND + passed.microseconds


def _days_in(year: int, month: int) -> int:
    return calendar.monthrange(year, month)[1]


def _is_last_day(then: datetime) -> bool:
    return then.day == _days_in(then.year, then.month) and then.day > 27


def months_of(stamps: Stamps) -> Stamps:
    """The month of each stamp, counted from January 1970."""
    return stamps.view("datetime64[us]").astype("datetime64[M]").astype(np.int64)


def business_days_of(stamps: Stamps) -> NDArray[np.float64]:
    """The business day of each stamp, counted from Monday, 29 December 1969; between two of them on a weekend.

    >>> business_days_of(np.array([0, DAY, 2 * DAY, 3 * DAY, 4 * DAY])).tolist()
    [3.0, 4.0, 4.5, 4.5, 5.0]
    """
    weeks, days = np.divmod((stamps - MONDAY) // DAY, 7)
    return np.asarray(WEEKDAYS * weeks + np.minimum(days, WEEKDAYS - 0.5))


def _day_of_business(number: float) -> int:
    """Days since 1970 of a business day; of half of one the first before it."""
    weeks, days = divmod(int(number // 1), WEEKDAYS)
    return 7 * weeks + days + MONDAY // DAY


def are_business_days(series: Sequence[Stamps]) -> bool:
    """Whether all stamps are on weekdays, some weekends long."""
    parts = (stamps[begin : begin + AT_ONCE] for stamps in series for begin in range(0, len(stamps), AT_ONCE))
    longest = max(int(stamps[-1] - stamps[0]) for stamps in series)
    return longest >= WEEKENDS * 7 * DAY and not any(bool((business_days_of(part) % 1).any()) for part in parts)


def step_of(series: Sequence[Stamps], are: str) -> Step | None:
    """The step that all series have in common, gaps left aside; None: they are spaced irregularly.

    Each series is sorted and without copies. The step is the most frequent difference, and every other one must be a
    multiple of it. Days of which none is on a weekend are business days.
    """
    series = [stamps for stamps in series if len(stamps) > 1]
    if not series:
        return Step(1, "numbers") if are == "numbers" else None
    gaps, counts = _gaps(series)
    if are == "times" and gaps[int(counts.argmax())] >= 28 * DAY and (months := _in_months(series)) is not None:
        return Step(months, "months")
    size = int(gaps[int(counts.argmax())])
    if bool((gaps % size).any()):
        return None
    if are == "times" and size == DAY and are_business_days(series):
        return Step(1, "business days")
    return Step(size, "numbers" if are == "numbers" else "microseconds")


def _gaps(series: Sequence[Stamps]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The differences of stamps, and how often each is there; some at a time, because there may be many."""
    found: Counter[int] = Counter()
    for stamps in series:
        for begin in range(0, len(stamps) - 1, AT_ONCE):
            gaps, counts = np.unique(np.diff(stamps[begin : begin + AT_ONCE + 1]), return_counts=True)
            for gap, count in zip(gaps.tolist(), counts.tolist()):
                found[gap] += count
    ordered = sorted(found.items())
    return np.array([gap for gap, _ in ordered], np.int64), np.array([count for _, count in ordered], np.int64)


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
