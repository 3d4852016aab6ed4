"""Series along time: how times are written, gaps, frequencies, covariates, and data for a run that forecasts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
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


def refused(name: str, settings: str, files: Any, *says: str) -> Any:
    return bad(f"forecast: {name}", f"forecast a.csv {settings}", files, *says)


def asked(name: str, settings: str, files: Any, *says: str) -> Any:
    return asks(f"forecast: {name}", f"forecast a.csv {settings}", files, *says)


def taken(name: str, settings: str, files: Any, *says: str, **facts: Any) -> Any:
    return good(f"forecast: {name}", f"forecast a.csv {settings}", files, *says, **facts)


WRITTEN = [
    refused("a word for a date", "", with_row(("soon", 3)), LINE, "'soon'", "--time-format"),
    refused("a day that is none", "", with_row(("2024-02-30", 3)), LINE, "2024-02-30"),
    refused("an hour that is none", "", with_row(("2024-01-21 25:00", 3)), LINE, "25:00"),
    refused("an empty date", "", with_row(("", 3)), LINE, "empty"),
    refused("NaT", "", with_row(("NaT", 3)), LINE, "NaT"),
    refused("a leap second", "", with_row(("2016-12-31 23:59:60", 3)), LINE, "leap second"),
    refused("day or month first", "", table(days(day_first, 12)), "line 2", "day-first", "month-first"),
    refused("both orders", "", with_row(("12/31/2024", 3), rows=days(day_first)), LINE, "other way"),
    refused("two formats", "", with_row(("21/1/2024", 3)), LINE, "'21/1/2024'", "2024-01-01"),
    refused("years of two digits", "", table(days(lambda d: d.strftime("%d/%m/%y"))), "line 2", "--time-format"),
    taken("names of months", "", table(days(lambda d: d.strftime("%d %b %Y"))), step="1 day"),
    refused("a zone by name", "", table([(f"{h} CET", 1) for h in HOURS]), "line 2", "CET"),
    refused("one date with a zone", "", with_row(("2024-01-21T00:00+02:00", 3)), LINE, "time zone"),
    refused("a fifth quarter", "", with_row(("2005Q5", 3), rows=QUARTERS), LINE, "2005Q5"),
    refused("week 54", "", with_row(("2024-W54", 3), rows=WEEKS), LINE, "2024-W54"),
    refused("a year of five digits", "", with_row(("20244-01-21", 3)), LINE, "20244-01-21"),
    refused("a format that does not match", "time_format=%d/%m/%Y", table(days()), "line 2", "%d/%m/%Y"),
    refused("fractions of days", "", table([(45292 + i / 24, i % 7) for i in range(N)]), "line 3", "excel"),
    asked("a format without %", "time_format=DD/MM/YYYY", table(days()), "DD/MM/YYYY", "day-first"),
    asked("two columns of times", "", table([(d, d, v) for d, v in days()], "start,end,value"), "start, end", "--time"),
    asked("no such column of times", "series.time=when", table(days()), "'when'", "--time", "date"),
    asked("test data from a word on", "test_from=later", table(days()), "--test-from", "'later'"),
    asked("test data after the end", "test_from=2030-01-01", table(days()), "2024-01-01 to 2024-02-29"),
    taken("the day first", "", table(days(day_first)), "day first", step="1 day"),
    taken("the month first", "", table(days(lambda d: d.strftime("%m/%d/%Y"))), "month first", step="1 day"),
    taken("seconds since 1970", "", ran(EPOCH), "seconds since 1970", "2024-01-01 00:00", step="1 hour"),
    taken("milliseconds since 1970", "", ran(EPOCH, 1000), "milliseconds since 1970", step="1 hour"),
    taken("nanoseconds since 1970", "", ran(EPOCH, 10**9), "nanoseconds since 1970", step="1 hour"),
    taken("seconds as numbers", "time_format=numbers", ran(EPOCH), step="3600"),
    taken("dates in digits", "", table(days(lambda d: d.strftime("%Y%m%d"))), "20240531", step="1 day"),
    taken("days of a spreadsheet", "", table([(45292 + i, i % 7) for i in range(N)]), "plain numbers", "excel"),
    taken(
        "days of a spreadsheet, told",
        "time_format=excel",
        table([(45292 + i, i % 7) for i in range(N)]),
        "2024-01-01",
        step="1 day",
    ),
    taken("quarters", "", table(QUARTERS), step="1 quarter"),
    taken("weeks", "", table(WEEKS), step="1 week"),
    taken("before 1677", "", table([(f"{1500 + i}-06-01", i % 7) for i in range(N)]), "1500-06-01", step="1 year"),
    taken("after 2262", "", table([(f"{2300 + i}-06-01", i % 7) for i in range(N)]), "2359-06-01", step="1 year"),
]

SPACED = [
    refused("a date twice", "", with_row(("2024-01-20", 3)), LINE, "2024-01-20", "twice"),
    refused("an hour twice", "", table([(h, 1) for h in [*HOURS[:30], *HOURS[29:]]]), "line 32", "daylight saving"),
    refused("a time between two", "", with_row(("2024-01-21 09:20", 3)), LINE, "09:20", "irregular"),
    refused(
        "days, then weeks",
        "",
        table([*days(n=30), *((DAYS[29] + timedelta(weeks=i), i) for i in range(1, 30))]),
        "line 32, column 'date'",
        "frequency",
    ),
    refused("one date centuries later", "", with_row(("2924-01-21", 3), at=59), "line 61", "2924-01-21"),
    refused("local midnights with a zone", "", table(MIDNIGHTS), "line 32", "daylight saving", "without their zone"),
    refused(
        "series of two frequencies",
        "id=shop",
        of_two(lambda i, row: i % 2 and row.update(date=DAYS[0] + timedelta(weeks=i // 2))),
        "'b / value'",
        "1 week",
        "1 day",
    ),
    taken("two series, no id", "", of_two(), "shop"),
    refused(
        "a series without a name",
        "id=shop",
        of_two(lambda i, row: i == 20 and row.update(shop="")),
        "line 22, column 'shop'",
        "empty",
    ),
    taken("dates out of order", "", table(days()[::-1]), "sorted by time", step="1 day"),
    taken(
        "an hour that the clock leaves out",
        "",
        table([(h, i % 24) for i, h in enumerate(HOURS) if i != 26]),
        "1 step is not in the table",
        "2024-03-31 02:00",
    ),
    taken("daylight saving with zones", "", table(SPRING), step="1 hour", missing=0),
    taken(
        "days of work", "", table([row for row, day in zip(days(), DAYS) if day.weekday() < 5]), step="1 business day"
    ),
    taken("no times at all", "", table([(f"w{i}", i % 7) for i in range(N)], "word,value"), "the rows are the steps"),
]

VALUES = [
    refused("a word for a number", "", with_row(("2024-01-21", "many")), CELL, "'many'"),
    refused("an infinite number", "", with_row(("2024-01-21", "inf")), CELL, "finite"),
    refused("beyond single precision", "", with_row(("2024-01-21", "1e300")), CELL, "1e300"),
    refused("percents", "", table(days(value=lambda i: f"{i}%")), "line 2, column 'value'", "'0%'"),
    refused("thousands", "", table(days(value=lambda i: f'"{i + 1},234"')), "line 2, column 'value'", "thousands"),
    good(
        "forecast: semicolons and decimal commas",
        "forecast a.csv",
        {"a.csv": "date;value\n" + "".join(f"{d};{v},5\n" for d, v in days())},
        "';'",
        "decimal comma",
    ),
    refused("always the same number", "", table(days(value=lambda _: 4)), "a.csv", "is 4", "nothing to learn"),
    refused("no number at all", "target=value", table(days(value=lambda _: "")), "a.csv", "no numbers"),
    refused("header only", "", {"a.csv": "date,value\n"}, "a.csv", "no rows"),
    refused("one row", "", table(days(n=1)), "a.csv", "too few"),
    refused("shorter than the horizon needs", "horizon=6", table(days(n=8)), "has 8 steps", "at least 20"),
    refused(
        "shorter than the look-back needs",
        "horizon=6 lookback=40",
        table(days(n=30)),
        "18 steps",
        "need 46",
        "--lookback",
    ),
    refused("no room for the backtest", "horizon=6 backtest=20", table(days()), "at least 140"),
    refused("the logarithm of 0", "transform=log", table(days()), "above 0", "--transform none"),
    refused(
        "negative counts",
        "distribution=negative-binomial",
        table(days(value=lambda i: i % 7 - 1)),
        "-1",
        "2024-01-01",
        "count",
    ),
    refused(
        "halves of counts",
        "distribution=negative-binomial",
        with_row(("2024-01-21", 2.5)),
        "2.5",
        "2024-01-21",
        "count",
    ),
    refused(
        "a word for a covariate",
        "past=sale target=value",
        beside(*[1] * 20, "cold", *[1] * 39),
        "line 22, column 'sale'",
        "'cold'",
    ),
    refused(
        "a static covariate that changes",
        "id=shop static=size target=value",
        of_two(lambda i, row: i == 20 and row.update(size=9)),
        "line 22, column 'size'",
        "'a'",
    ),
    asked("counts that are scaled", "distribution=negative-binomial scaling=standard", table(days()), "scaling"),
    asked("two kinds of test data", "backtest=2 test_steps=9", table(days()), "--backtest", "--test-steps"),
    taken(
        "a run of missing values",
        "",
        table(days(value=lambda i: "" if 20 < i < 40 else i % 7)),
        "19 values are missing",
        missing=19,
    ),
    taken(
        "one series of two is constant",
        "",
        table([(d, v, 4) for d, v in days()], "date,a,b"),
        "1 series is constant",
        "'b'",
        series=2,
    ),
    taken(
        "series of one value and of none",
        "id=shop",
        table([*((d, "a", v) for d, v in days()), (DAYS[0], "b", 3), (DAYS[9], "c", "")], "date,shop,value"),
        "2 series have fewer than two values and cannot be used: 'b', 'c'",
        series=1,
    ),
    taken(
        "a covariate with a hole",
        "future=sale target=value",
        beside(*[0] * 20, "", *[1] * 39),
        "1 value of the covariate 'sale'",
    ),
]

NEW = "time,value,sale\n" + "".join(f"{h.isoformat(' ')},{i % 24},{i % 2}\n" for i, h in enumerate(HOURS))
SALES = "".join(f"2024-04-03 0{i}:00:00,,{i % 2}\n" for i in range(3))
FORECAST = "forecast forecast-run --history "
LATER = [
    refused("covariates end too early", "", {"a.csv": NEW + SALES}, "end 3 steps after", "sale", "--horizon"),
    refused("covariates without a value", "", {"a.csv": NEW + SALES + "2024-04-03 03:00:00,,\n"}, "end 3 steps after"),
    refused("a history without its column", "", {"a.csv": NEW.replace("sale", "sold")}, "a.csv", "'sale'", "sold"),
    refused(
        "a history of numbers for times",
        "",
        {"a.csv": "time,value,sale\n" + "".join(f"{i},{i},1\n" for i in range(99))},
        "column 'time'",
        "dates",
    ),
    refused("a history with zones", "", {"a.csv": NEW.replace(":00,", ":00+01:00,")}, "column 'time'", "time zone"),
    refused(
        "a history by the half hour",
        "",
        {"a.csv": NEW + "2024-04-03 00:30:00,3,1\n"},
        "line 98, column 'time'",
        "1 hour",
    ),
    taken("fewer steps than covariates", "--horizon 3", {"a.csv": NEW + SALES}, "2024-04-03 02:00:00"),
]

CASES: list[Any] = [
    *WRITTEN,
    *SPACED,
    *VALUES,
    *(replace(case, words=case.words.replace("forecast ", FORECAST, 1)) for case in LATER),
]
