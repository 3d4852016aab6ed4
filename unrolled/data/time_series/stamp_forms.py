"""How time stamps are written, and what a column of them means.

| written | example | held as |
|---|---|---|
| ISO 8601 | 2024-05-31, 2024-05-31 12:00, 2024-05-31T12:00:00+02:00, 2024-W22 | microseconds since 1970, zones in UTC |
| year and month, quarter | 2024-05, 2024Q2 | the first day of it |
| with the name of a month | Jan 2024, January 2024, Jan-24, 31 Jan 2024, Jan 31, 2024 | likewise; in English |
| with slashes, dots or dashes | 31/12/2024, 12/31/2024, 31.12.2024 | likewise; the whole column tells day from month |
| whole numbers | 1749, 17 | as they are: years or steps |
| numbers that are times | 1704067200, 1704067200000, 20240531, 202405 | since 1970 in UTC, or a date, and reported |

What was found is a form, which is reported and kept with a run: a format of strptime, or one of FORMS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import numpy as np

from unrolled.core.errors import DataError, UsageError
from unrolled.core.front import option
from unrolled.data.files.cell_values import is_gap, is_number, shown
from unrolled.data.time_series.reading import EPOCHS, FORMS
from unrolled.data.time_series.stamps import DAY, Column, datetime_of, microseconds_of, written

Place = Callable[[int], str]

EXCEL = microseconds_of(datetime(1899, 12, 30))
EARLIEST, LATEST = 10**9, 42 * 10**8  # seconds since 1970, 2001 to 2103: numbers in between are hardly anything else
SERIALS = range(30_000, 60_000)  # of Excel: 1982 to 2064

_MONTH = re.compile(r"(\d{4})[-/](\d{1,2})")
_QUARTER = re.compile(r"(\d{4})[- ]?[Qq]([1-4])")
_NUMBERS = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})(?:[ T](.+))?")
_YEAR_FIRST = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})(\D.*)?")
_ONE_DIGIT = re.compile(r"(\d{4}-\d{2}-\d{2})[ T](\d:\d{2}(:\d{2})?)")
_NAMES = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
          "december")  # fmt: skip
_MONTHS = {name[:n]: k + 1 for k, name in enumerate(_NAMES) for n in (3, len(name))} | {"sept": 9}
_B, _Y, _D, _BETWEEN = r"(?P<b>[A-Za-z]{3,9})\.?", r"(?P<y>\d{4}|'?\d\d)", r"(?P<d>\d{1,2})", r"[ /.,-]{1,2}"
_NAMED = [
    re.compile(form + r"(?P<rest>[ T]\d{1,2}:.+)?")
    for form in (
        f"{_B}{_BETWEEN}{_Y}",
        rf"(?P<y>\d{{4}}){_BETWEEN}{_B}",
        f"{_D}{_BETWEEN}{_B}{_BETWEEN}{_Y}",
        f"{_B} {_D}{_BETWEEN}{_Y}",
    )
]
_DIGIT = re.compile(r"\d")
CENTURY = 69  # years of two digits from here on are of the last century, as for strptime


class Form(NamedTuple):
    """How a column is written; None: ISO 8601 and its like, which need no telling."""

    name: str | None
    note: str = ""


def parse(cells: Sequence[Any], place: Place, form: str | None = None) -> Column:
    """The stamps of all cells of a column; a bad one is reported with its row."""
    empty = next((i for i, cell in enumerate(cells) if is_gap(cell)), None)
    if empty is not None:
        raise DataError(f"{place(empty)}: found {shown(cells[empty])}, expected a time stamp; fill it in")
    found = Form(form) if form is not None else _form_of(cells, place)
    if found.name in ("numbers", "excel", *EPOCHS):
        return _of_numbers(cells, place, found)
    stamps, zones = np.empty(len(cells), np.int64), set[bool]()
    for i, cell in enumerate(cells):
        then = _read(cell, found.name, place, i)
        zones.add(then.tzinfo is not None)
        if len(zones) > 1:
            raise DataError(
                f"{place(i)}: found {shown(cell)}, but other time stamps of this column are written "
                f"{'with' if then.tzinfo is None else 'without'} a time zone; write all of them the same way"
            )
        stamps[i] = microseconds_of(then.astimezone(UTC).replace(tzinfo=None) if then.tzinfo is not None else then)
    return Column(stamps, "times", zones == {True}, *found)


def parse_one(text: Any, column: Column, what: str) -> int:
    """A stamp that an option names, in the kind of a column's, as the column is written or in ISO 8601."""
    for form in (column.form, None):
        try:
            found = parse([text], lambda _: what, form)
        except DataError:
            continue
        if found.are == column.are:
            return int(found.stamps[0])
    kind = "an integer" if column.are == "numbers" else "a time such as 2024-05-31 or 2024-05-31 12:00"
    raise UsageError(f"{what}: found {shown(text)}, expected {kind}, as in the column of times")


def are_times(cells: Sequence[Any]) -> bool:
    """Whether cells can be read as times, also where day and month are ambiguous."""
    if any(isinstance(cell, str) and _DIGIT.search(cell) is None for cell in cells):
        return False  # quickly, because every column of a table is asked
    for form in (None, "day-first", "month-first"):
        try:
            return parse(cells, lambda _: "", form).are == "times"
        except (DataError, ValueError, OverflowError):
            continue
    return False


# ---- which form


def _form_of(cells: Sequence[Any], place: Place) -> Form:
    if not cells:
        return Form(None)
    if all(is_number(cell) for cell in cells):
        return _form_of_numbers(cells)
    found = [_NUMBERS.fullmatch(cell.strip()) if isinstance(cell, str) else None for cell in cells]
    if found[0] is None and not any(found):
        return Form(None, _note_on_years(str(cells[0]).strip()))
    separators = [None if at is None else at[2] for at in found]
    other = next((i for i, separator in enumerate(separators) if separator != separators[0]), None)
    if other is not None:
        raise DataError(
            f"{place(other)}: found {shown(cells[other])}, but the rows above are written as {shown(cells[0])}; write "
            "all of them the same way, such as 2024-05-31"
        )
    day = next((i for i, at in enumerate(found) if at is not None and int(at[1]) > 12), None)
    month = next((i for i, at in enumerate(found) if at is not None and int(at[3]) > 12), None)
    if day is not None and month is not None:
        raise DataError(
            f"{place(max(day, month))}: found {shown(cells[max(day, month)])}, but other rows have day and month the "
            "other way round; write all as 2024-05-31"
        )
    if day is None and month is None and separators[0] != ".":
        forms = f"{option('time_format', 'day-first')} or {option('time_format', 'month-first')}"
        raise DataError(f"{place(0)}: {shown(cells[0])} may have the day or the month first; give {forms}")
    name = "month-first" if month is not None else "day-first"
    shows = cells[month if month is not None else day if day is not None else 0]
    return Form(name, f"dates such as {shown(shows)} are read with the {name.split('-')[0]} first")


def _form_of_numbers(cells: Sequence[Any]) -> Form:
    """Numbers that are hardly anything else than times are times; years, steps and all others are numbers."""
    try:
        numbers = [_exact(cell) for cell in cells]
    except (ValueError, OverflowError):
        return Form("numbers")
    low, high = min(numbers), max(numbers)
    back = f"; {option('time_format', 'numbers')} takes them as plain numbers"
    for name, unit in EPOCHS.items():
        if EARLIEST * unit <= low and high < LATEST * unit:
            return Form(name, f"the numbers of the column of times are read as {name} since 1970 in UTC{back}")
    whole = all(number == int(number) for number in numbers)
    for name, digits, example in (("%Y%m%d", 8, "dates such as 20240531"), ("%Y%m", 6, "months such as 202405")):
        if whole and len(str(int(low))) == len(str(int(high))) == digits and _all_match(numbers, name):
            return Form(name, f"the numbers of the column of times are read as {example}{back}")
    if low in SERIALS and high in SERIALS:
        excel = option("time_format", "excel")
        plain = "the numbers of the column of times are read as plain numbers"
        return Form("numbers", f"{plain}; if they are dates of a spreadsheet, give {excel}")
    return Form("numbers")


def _all_match(numbers: Sequence[float | int], form: str) -> bool:
    try:
        return all(1700 <= datetime.strptime(str(int(number)), form).year < 2300 for number in numbers)
    except ValueError:
        return False


def _exact(cell: Any) -> int | float:
    """A number without loss: nanoseconds since 1970 have more digits than a float."""
    if isinstance(cell, str) and re.fullmatch(r"\s*[+-]?\d+\s*", cell):
        return int(cell)
    if isinstance(cell, int | np.integer):
        return int(cell)
    number = float(cell)
    return int(number) if number.is_integer() else number


# ---- one cell


def _of_numbers(cells: Sequence[Any], place: Place, form: Form) -> Column:
    """Numbers as they are, or as times since a beginning."""
    stamps = np.empty(len(cells), np.int64)
    for i, cell in enumerate(cells):
        try:
            stamps[i] = _stamp(_exact(cell) if is_number(cell) else None, form.name)
        except (TypeError, ValueError, OverflowError):
            what = {"numbers": "an integer", "excel": "a date of a spreadsheet such as 45292.5"}
            expected = what.get(str(form.name), f"a number of {form.name} since 1970")
            raise DataError(f"{place(i)}: found {shown(cell)}, expected {expected}; {_hint(cell)}") from None
    if form.name == "numbers":
        return Column(stamps, "numbers", False, *form)
    first = (
        f" (the first is {written(int(stamps[0]), 'times', form.name in EPOCHS)})" if form.note and len(cells) else ""
    )
    note = form.note.replace(";", f"{first};", 1)
    return Column(stamps, "times", form.name in EPOCHS, form.name, note)


def _stamp(number: Any, form: str | None) -> int:
    if form == "numbers":
        if number != int(number) or abs(number) >= 2**62:
            raise ValueError
        return int(number)
    if form == "excel":
        found = EXCEL + round(number * DAY / 1000) * 1000  # its fractions are good to about a millisecond
    else:
        unit = EPOCHS[str(form)]  # of a second
        found = number * 10**6 // unit if isinstance(number, int) else round(number * 10**6 / unit)
    datetime_of(found)  # refuses what no calendar has
    return int(found)


def _read(cell: Any, form: str | None, place: Place, i: int) -> datetime:
    if isinstance(cell, datetime):
        return cell
    if isinstance(cell, date):
        return datetime(cell.year, cell.month, cell.day)
    if isinstance(cell, np.datetime64):
        return datetime_of(int(cell.astype("datetime64[us]").astype(np.int64)))
    if form is not None and form not in FORMS:
        try:
            return datetime.strptime(str(cell).strip(), form)
        except ValueError:
            given = option("time_format", form)
            raise DataError(f"{place(i)}: found {shown(cell)}, which does not match the format {given}") from None
    try:
        return _from_text(str(cell).strip(), form == "day-first")
    except ValueError:
        raise DataError(f"{place(i)}: found {shown(cell)}, expected a time stamp; {_hint(cell)}") from None


def _hint(cell: Any) -> str:
    text = str(cell)
    if re.search(r":60(\D|$)", text):
        return "leap seconds cannot be used: write the second before it, or remove the row"
    if is_number(cell):
        return f"give what the numbers are with {option('time_format')}: {', '.join((*EPOCHS, 'excel'))}"
    return f"write it as 2024-05-31 or 2024-05-31 12:00, or give its format with {option('time_format')}"


def _named(text: str) -> str | None:
    """A time with the name of a month, with its number instead; None: it has none.

    >>> _named("Jan 2024"), _named("31-Dec-99"), _named("May 5, 2024 9:30"), _named("Mon 2024")
    ('2024-01-01', '1999-12-31', '2024-05-05 09:30', None)
    """
    for form in _NAMED:
        if (found := form.fullmatch(text)) and (month := _MONTHS.get(found["b"].lower())) is not None:
            year, parts = found["y"].lstrip("'"), found.groupdict()
            whole = int(year) + (0 if len(year) == 4 else 1900 if int(year) >= CENTURY else 2000)
            rest = (parts["rest"] or "").strip(" T")
            clock = f" {rest:0>{len(rest) + (rest[1:2] == ':')}}" if rest else ""
            return f"{whole:04}-{month:02}-{int(parts.get('d') or 1):02}{clock}"
    return None


def _note_on_years(text: str) -> str:
    """What is made of a year of two digits."""
    named = _named(text)
    return f"times such as {shown(text)} are read as {named}" if named and named[:4] not in text else ""


def _from_text(text: str, day_first: bool) -> datetime:
    """
    >>> _from_text("2024Q2", False), _from_text("31.12.2024", True)
    (datetime.datetime(2024, 4, 1, 0, 0), datetime.datetime(2024, 12, 31, 0, 0))
    """
    if found := _MONTH.fullmatch(text):
        return datetime(int(found[1]), int(found[2]), 1)
    if found := _QUARTER.fullmatch(text):
        return datetime(int(found[1]), 3 * int(found[2]) - 2, 1)
    if (named := _named(text)) is not None:
        text = named
    elif found := _YEAR_FIRST.fullmatch(text):
        text = f"{found[1]}-{int(found[2]):02}-{int(found[3]):02}{found[4] or ''}"
    elif found := _NUMBERS.fullmatch(text):
        day, month = (found[1], found[3]) if day_first else (found[3], found[1])
        rest = f" {found[5]}" if found[5] else ""
        text = f"{found[4]}-{int(month):02}-{int(day):02}{rest}"
    if found := _ONE_DIGIT.fullmatch(text):  # an hour of one digit
        text = f"{found[1]} 0{found[2]}"
    return datetime.fromisoformat(text)
