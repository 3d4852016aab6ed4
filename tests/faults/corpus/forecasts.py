"""Series along time: how times are written, gaps, frequencies, covariates, and data for a run that forecasts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from tests.faults.corpus.case import asks, bad, good

N = 60
DAYS = [date(2024, 1, 1) + timedelta(days=i) for i in range(N)]
HOURS = [datetime(2024, 3, 30) + timedelta(hours=i) for i in range(96)]  # daylight saving begins on the second day

Rows = list[tuple[Any, Any]]


def table(rows: Iterable[Any], head: str = "date,value") -> dict[str, Any]:
    return {"a.csv": f"{head}\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)}


def days(
    form: Callable[[date], str] = date.isoformat, n: int = N, value: Callable[[int], Any] = lambda i: i % 7
) -> Rows:
    return [(form(day), value(i)) for i, day in enumerate(DAYS[:n])]


def with_row(row: tuple[Any, ...], at: int = 20, rows: Rows | None = None) -> dict[str, Any]:
    """One row replaced: line at + 2."""
    found = days() if rows is None else list(rows)
    return table([*found[:at], row, *found[at + 1 :]])


def ran(start: int, unit: int = 1, step: int = 3600) -> dict[str, Any]:
    return table([((start + step * i) * unit, i % 24) for i in range(96)], "timestamp,value")


def of_two(change: Callable[[int, dict[str, Any]], object] = lambda _, row: row) -> dict[str, Any]:
    """Two series in one long table."""
    rows = [{"shop": "ab"[i % 2], "date": DAYS[i // 2], "value": i % 7 + i, "size": i % 2 + 1} for i in range(2 * N)]
    for i, row in enumerate(rows):
        change(i, row)
    return table([row.values() for row in rows], "shop,date,value,size")


def beside(*known: Any, seen: int = N) -> dict[str, Any]:
    """A covariate beside values, of which the last are missing."""
    rows = [(day, i % 7 if i < seen else "", cell) for i, (day, cell) in enumerate(zip(DAYS, known))]
    return table(rows, "date,value,sale")


def day_first(day: date) -> str:
    return f"{day.day}/{day.month}/{day.year}"


def at(hour: datetime, offset: int) -> str:
    return f"{hour.isoformat(' ')}+0{offset}:00"


LINE, CELL = "a.csv, line 22, column 'date'", "a.csv, line 22, column 'value'"
EPOCH = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())
QUARTERS = [(f"{2000 + i // 4}Q{i % 4 + 1}", i % 4 + i) for i in range(N)]
WEEKS = [((lambda c: f"{c[0]}-W{c[1]:02}")((DAYS[0] + timedelta(weeks=i)).isocalendar()), i % 5 + i) for i in range(N)]
LOCAL = [(at(hour, 1 if hour < datetime(2024, 3, 31, 2) else 2), i % 24) for i, hour in enumerate(HOURS)]
SPRING = [row for row in LOCAL if not row[0].startswith("2024-03-31 02")]
MIDNIGHTS = [(f"{day}T00:00+0{1 if day <= date(2024, 1, 30) else 2}:00", i % 7) for i, day in enumerate(DAYS)]

WRITTEN = [
    bad("forecast: a word for a date", "forecast a.csv", with_row(("soon", 3)), LINE, "'soon'", "--time-format"),
    bad("forecast: a day that is none", "forecast a.csv", with_row(("2024-02-30", 3)), LINE, "2024-02-30"),
    bad("forecast: an hour that is none", "forecast a.csv", with_row(("2024-01-21 25:00", 3)), LINE, "25:00"),
    bad("forecast: an empty date", "forecast a.csv", with_row(("", 3)), LINE, "empty"),
    bad("forecast: NaT", "forecast a.csv", with_row(("NaT", 3)), LINE, "NaT"),
    bad("forecast: a leap second", "forecast a.csv", with_row(("2016-12-31 23:59:60", 3)), LINE, "leap second"),
    bad("forecast: day or month first", "forecast a.csv", table(days(day_first, 12)), "line 2", "day-first", "month-first"),
    bad("forecast: both orders", "forecast a.csv", with_row(("12/31/2024", 3), rows=days(day_first)), LINE, "other way"),
    bad("forecast: two formats", "forecast a.csv", with_row(("21/1/2024", 3)), LINE, "'21/1/2024'", "2024-01-01"),
    bad("forecast: years of two digits", "forecast a.csv", table(days(lambda d: d.strftime("%d/%m/%y"))), "line 2", "--time-format"),
    bad("forecast: names of months", "forecast a.csv", table(days(lambda d: d.strftime("%d %b %Y"))), "line 2", "--time-format"),
    bad("forecast: a zone by name", "forecast a.csv", table([(f"{h} CET", 1) for h in HOURS]), "line 2", "CET"),
    bad("forecast: one date with a zone", "forecast a.csv", with_row(("2024-01-21T00:00+02:00", 3)), LINE, "time zone"),
    bad("forecast: a fifth quarter", "forecast a.csv", with_row(("2005Q5", 3), rows=QUARTERS), LINE, "2005Q5"),
    bad("forecast: week 54", "forecast a.csv", with_row(("2024-W54", 3), rows=WEEKS), LINE, "2024-W54"),
    bad("forecast: a year of five digits", "forecast a.csv", with_row(("20244-01-21", 3)), LINE, "20244-01-21"),
    bad("forecast: a format that does not match", "forecast a.csv time_format=%d/%m/%Y", table(days()), "line 2", "%d/%m/%Y"),
    bad("forecast: fractions of days", "forecast a.csv", table([(45292 + i / 24, i % 7) for i in range(N)]), "line 3", "excel"),
    asks("forecast: a format without %", "forecast a.csv time_format=DD/MM/YYYY", table(days()), "DD/MM/YYYY", "day-first"),
    asks("forecast: two columns of times", "forecast a.csv", table([(d, d, v) for d, v in days()], "start,end,value"), "start, end", "--time"),
    asks("forecast: no such column of times", "forecast a.csv series.time=when", table(days()), "'when'", "--time", "date"),
    asks("forecast: test data from a word on", "forecast a.csv test_from=later", table(days()), "--test-from", "'later'"),
    asks("forecast: test data after the end", "forecast a.csv test_from=2030-01-01", table(days()), "2024-01-01 to 2024-02-29"),
    good("forecast: the day first", "forecast a.csv", table(days(day_first)), "day first", step="1 day"),
    good("forecast: the month first", "forecast a.csv", table(days(lambda d: d.strftime("%m/%d/%Y"))), "month first", step="1 day"),
    good("forecast: seconds since 1970", "forecast a.csv", ran(EPOCH), "seconds since 1970", "2024-01-01 00:00", step="1 hour"),
    good("forecast: milliseconds since 1970", "forecast a.csv", ran(EPOCH, 1000), "milliseconds since 1970", step="1 hour"),
    good("forecast: nanoseconds since 1970", "forecast a.csv", ran(EPOCH, 10**9), "nanoseconds since 1970", step="1 hour"),
    good("forecast: seconds as numbers", "forecast a.csv time_format=numbers", ran(EPOCH), step="3600"),
    good("forecast: dates in digits", "forecast a.csv", table(days(lambda d: d.strftime("%Y%m%d"))), "20240531", step="1 day"),
    good("forecast: days of a spreadsheet", "forecast a.csv", table([(45292 + i, i % 7) for i in range(N)]), "plain numbers", "excel"),
    good("forecast: days of a spreadsheet, told", "forecast a.csv time_format=excel", table([(45292 + i, i % 7) for i in range(N)]), "2024-01-01", step="1 day"),
    good("forecast: quarters", "forecast a.csv", table(QUARTERS), step="1 quarter"),
    good("forecast: weeks", "forecast a.csv", table(WEEKS), step="1 week"),
    good("forecast: before 1677", "forecast a.csv", table([(f"{1500 + i}-06-01", i % 7) for i in range(N)]), "1500-06-01", step="1 year"),
    good("forecast: after 2262", "forecast a.csv", table([(f"{2300 + i}-06-01", i % 7) for i in range(N)]), "2359-06-01", step="1 year"),
]  # fmt: skip

SPACED = [
    bad("forecast: a date twice", "forecast a.csv", with_row(("2024-01-20", 3)), LINE, "2024-01-20", "twice"),
    bad("forecast: an hour twice", "forecast a.csv", table([(h, 1) for h in [*HOURS[:30], *HOURS[29:]]]), "line 32", "daylight saving"),
    bad("forecast: a time between two", "forecast a.csv", with_row(("2024-01-21 09:20", 3)), LINE, "09:20", "irregular"),
    bad("forecast: days, then weeks", "forecast a.csv", table([*days(n=30), *((DAYS[29] + timedelta(weeks=i), i) for i in range(1, 30))]), "line 32, column 'date'", "frequency"),
    bad("forecast: one date centuries later", "forecast a.csv", with_row(("2924-01-21", 3), at=59), "line 61", "2924-01-21"),
    bad("forecast: local midnights with a zone", "forecast a.csv", table(MIDNIGHTS), "line 32", "daylight saving", "without their zone"),
    bad("forecast: series of two frequencies", "forecast a.csv id=shop", of_two(lambda i, row: i % 2 and row.update(date=DAYS[0] + timedelta(weeks=i // 2))), "'b'", "1 week", "1 day"),
    bad("forecast: two series, no id", "forecast a.csv", of_two(), "line 3, column 'date'", "--id"),
    bad("forecast: a series without a name", "forecast a.csv id=shop", of_two(lambda i, row: i == 20 and row.update(shop="")), "line 22, column 'shop'", "empty"),
    good("forecast: dates out of order", "forecast a.csv", table(days()[::-1]), "sorted by time", step="1 day"),
    good("forecast: an hour that the clock leaves out", "forecast a.csv", table([(h, i % 24) for i, h in enumerate(HOURS) if i != 26]), "1 step is not in the table", "2024-03-31 02:00"),
    good("forecast: daylight saving with zones", "forecast a.csv", table(SPRING), step="1 hour", missing=0),
    good("forecast: days of work", "forecast a.csv", table([row for row, day in zip(days(), DAYS) if day.weekday() < 5]), "missing", step="1 day"),
    good("forecast: no times at all", "forecast a.csv", table([(f"w{i}", i % 7) for i in range(N)], "word,value"), "the rows are the steps"),
]  # fmt: skip

VALUES = [
    bad("forecast: a word for a number", "forecast a.csv", with_row(("2024-01-21", "many")), CELL, "'many'"),
    bad("forecast: an infinite number", "forecast a.csv", with_row(("2024-01-21", "inf")), CELL, "finite"),
    bad("forecast: beyond single precision", "forecast a.csv", with_row(("2024-01-21", "1e300")), CELL, "1e300"),
    bad("forecast: percents", "forecast a.csv", table(days(value=lambda i: f"{i}%")), "line 2, column 'value'", "'0%'"),
    bad("forecast: a decimal comma", "forecast a.csv", table(days(value=lambda i: f'"{i},5"')), "line 2, column 'value'", "decimal point"),
    bad("forecast: semicolons", "forecast a.csv", {"a.csv": "date;value\n" + "".join(f"{d};{v},5\n" for d, v in days())}, "line 1", "';'"),
    bad("forecast: always the same number", "forecast a.csv", table(days(value=lambda _: 4)), "a.csv", "is 4", "nothing to learn"),
    bad("forecast: no number at all", "forecast a.csv target=value", table(days(value=lambda _: "")), "a.csv", "no numbers"),
    bad("forecast: header only", "forecast a.csv", {"a.csv": "date,value\n"}, "a.csv", "no rows"),
    bad("forecast: one row", "forecast a.csv", table(days(n=1)), "a.csv", "too few"),
    bad("forecast: shorter than the horizon needs", "forecast a.csv horizon=6", table(days(n=8)), "has 8 steps", "at least 20"),
    bad("forecast: shorter than the look-back needs", "forecast a.csv horizon=6 lookback=40", table(days(n=30)), "18 steps", "need 46", "--lookback"),
    bad("forecast: no room for the backtest", "forecast a.csv horizon=6 backtest=20", table(days()), "at least 140"),
    bad("forecast: the logarithm of 0", "forecast a.csv transform=log", table(days()), "above 0", "--transform none"),
    bad("forecast: negative counts", "forecast a.csv distribution=negative-binomial", table(days(value=lambda i: i % 7 - 1)), "-1", "2024-01-01", "count"),
    bad("forecast: halves of counts", "forecast a.csv distribution=negative-binomial", with_row(("2024-01-21", 2.5)), "2.5", "2024-01-21", "count"),
    bad("forecast: a word for a covariate", "forecast a.csv past=sale target=value", beside(*[1] * 20, "cold", *[1] * 39), "line 22, column 'sale'", "'cold'"),
    bad("forecast: a static covariate that changes", "forecast a.csv id=shop static=size target=value", of_two(lambda i, row: i == 20 and row.update(size=9)), "line 22, column 'size'", "'a'"),
    asks("forecast: counts that are scaled", "forecast a.csv distribution=negative-binomial scaling=standard", table(days()), "scaling"),
    asks("forecast: two kinds of test data", "forecast a.csv backtest=2 test_steps=9", table(days()), "--backtest", "--test-steps"),
    good("forecast: a run of missing values", "forecast a.csv", table(days(value=lambda i: "" if 20 < i < 40 else i % 7)), "19 values are missing", missing=19),
    good("forecast: one series of two is constant", "forecast a.csv", table([(d, v, 4) for d, v in days()], "date,a,b"), "1 series is constant", "'b'", series=2),
    good("forecast: a covariate with a hole", "forecast a.csv future=sale target=value", beside(*[0] * 20, "", *[1] * 39), "1 value of the covariate 'sale'"),
]  # fmt: skip

NEW = "time,value,sale\n" + "".join(f"{h.isoformat(' ')},{i % 24},{i % 2}\n" for i, h in enumerate(HOURS))
SALES = "".join(f"2024-04-03 0{i}:00:00,,{i % 2}\n" for i in range(3))
LATER = [
    bad("forecast: covariates end too early", "forecast forecast-run --history a.csv", {"a.csv": NEW + SALES}, "end 3 steps after", "sale", "--horizon"),
    bad("forecast: covariates without a value", "forecast forecast-run --history a.csv", {"a.csv": NEW + SALES + "2024-04-03 03:00:00,,\n" * 1}, "end 3 steps after"),
    bad("forecast: a history without its column", "forecast forecast-run --history a.csv", {"a.csv": NEW.replace("sale", "sold")}, "a.csv", "'sale'", "sold"),
    bad("forecast: a history of numbers for times", "forecast forecast-run --history a.csv", {"a.csv": "time,value,sale\n" + "".join(f"{i},{i},1\n" for i in range(99))}, "column 'time'", "dates"),
    bad("forecast: a history with zones", "forecast forecast-run --history a.csv", {"a.csv": NEW.replace(":00,", ":00+01:00,")}, "column 'time'", "time zone"),
    bad("forecast: a history by the half hour", "forecast forecast-run --history a.csv", {"a.csv": NEW + "2024-04-03 00:30:00,3,1\n"}, "line 98, column 'time'", "1 hour"),
    good("forecast: fewer steps than covariates", "forecast forecast-run --history a.csv --horizon 3", {"a.csv": NEW + SALES}, "2024-04-03 02:00:00"),
]  # fmt: skip

CASES: list[Any] = [*WRITTEN, *SPACED, *VALUES, *LATER]
