"""Time stamps: how they are written, how far apart they are, which come next."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.core.errors import DataError, UsageError
from unrolled.data.time_series.stamp_forms import parse, parse_one
from unrolled.data.time_series.stamps import DAY, Step, step_of, written


def read(*cells: object, form: str | None = None):
    return parse(list(cells), lambda i: f"f.csv, line {i + 2}, column 'when'", form)


@pytest.mark.parametrize(
    ("cells", "step", "following"),
    [
        (["1949-01", "1949-02", "1949-03"], "1 month", "1949-04-01"),
        (["2024-01-31", "2024-02-29", "2024-03-31"], "1 month", "2024-04-30"),
        (["2024Q1", "2024Q2", "2024Q3"], "1 quarter", "2024-10-01"),
        (["1/30/1981", "1/31/1981", "2/1/1981"], "1 day", "1981-02-02"),
        (["30/1/1981", "31/1/1981", "1/2/1981"], "1 day", "1981-02-02"),
        (["30.01.1981", "31.01.1981", "01.02.1981"], "1 day", "1981-02-02"),
        (["2014-7-1", "2014-7-2", "2014-7-4"], "1 day", "2014-07-05"),
        (["2024-01-01 0:30", "2024-01-01 1:00", "2024-01-01 1:30"], "30 minutes", "2024-01-01 02:00:00"),
        (["2024-01-01T00:00+02:00", "2024-01-01T01:00+02:00"], "1 hour", "2024-01-01 00:00:00+00:00"),
        (["2023-01-02", "2023-01-09", "2023-01-16"], "1 week", "2023-01-23"),
        (["1999", "2000", "2001"], "1 (whole numbers)", "2002"),
        (["2020-12-31", "2021-12-31", "2022-12-31"], "1 year", "2023-12-31"),
        (["Jan 2024", "Feb 2024", "Mar 2024"], "1 month", "2024-04-01"),
        (["October-23", "November-23", "December-23"], "1 month", "2024-01-01"),
        (["30-Dec-2023", "31-Dec-2023", "1-Jan-2024"], "1 day", "2024-01-02"),
        (["May 5, 2024 9:00", "May 5, 2024 10:00", "May 5, 2024 11:00"], "1 hour", "2024-05-05 12:00:00"),
    ],
)
def test_stamps_as_people_write_them(cells: list[str], step: str, following: str) -> None:
    column = read(*cells)
    found = step_of([column.stamps], column.are)
    assert found is not None and str(found) == step
    assert column.written(found.after(int(column.stamps[-1]), 1)[0]) == following


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["2024-01-01", "yesterday"], ["line 3", "'yesterday'", "time_format"]),
        (["2024-01-01", ""], ["line 3", "empty"]),
        (["1/2/2024", "3/4/2024"], ["line 2", "day or the month", "day-first"]),
        (["13/2/2024", "3/14/2024"], ["line 3", "the other way round"]),
        (["2024-01-01T00:00+02:00", "2024-01-01 01:00"], ["line 3", "time zone"]),
        (["2024-02-30"], ["line 2", "2024-02-30"]),
    ],
)
def test_stamps_that_cannot_be_read(cells: list[str], words: list[str]) -> None:
    with pytest.raises(DataError) as error:
        read(*cells)
    assert all(word in str(error.value) for word in words), error.value


def test_a_format_that_is_given() -> None:
    assert (
        read("01/02/2024", form="%d/%m/%Y").written(int(read("01/02/2024", form="%d/%m/%Y").stamps[0])) == "2024-02-01"
    )
    with pytest.raises(DataError, match="line 3"):
        read("01/02/2024", "2024-01-02", form="%d/%m/%Y")


def test_one_stamp_is_of_the_kind_of_the_column() -> None:
    column = read("2024-01-01", "2024-01-02")
    assert parse_one("2024-01-02", column, "--test-from") == column.stamps[1]
    with pytest.raises(UsageError, match="--test-from"):
        parse_one("17", column, "--test-from")


def test_gaps_are_multiples_of_the_step_and_others_are_irregular() -> None:
    hours = read("2024-01-01 00:00", "2024-01-01 01:00", "2024-01-01 02:00", "2024-01-01 05:00")
    assert step_of([hours.stamps], "times") == Step(3600 * 10**6, "microseconds")
    odd = read("2024-01-01 00:00", "2024-01-01 01:00", "2024-01-01 02:00", "2024-01-01 02:20")
    assert step_of([odd.stamps], "times") is None


@given(st.integers(-400, 4000), st.integers(1, 30), st.integers(1, 12))
def test_months_go_on_by_the_calendar(first: int, n: int, size: int) -> None:
    """Every n steps on, the day is the same, or the last of its month."""
    step = Step(size, "months")
    start = int(np.datetime64("1970-01-31").astype("datetime64[M]").astype(int)) + first
    stamp = int((np.datetime64(0, "M") + start).astype("datetime64[us]").astype(np.int64)) + 14 * DAY
    following = step.after(stamp, n)
    days = [written(each, "times")[-2:] for each in following]
    assert days == ["15"] * n
    assert step.between(stamp, np.array(following)).tolist() == list(range(1, n + 1))


def test_seasons_of_a_step() -> None:
    assert Step(1, "months").seasons() == (12,)
    assert Step(3, "months").seasons() == (4,)
    assert Step(DAY, "microseconds").seasons() == (7, 365)
    assert Step(DAY // 48, "microseconds").seasons() == (48, 336)
    assert Step(1, "numbers").seasons() == ()


@pytest.mark.parametrize(
    ("cells", "form", "first"),
    [
        (["1704067200", "1704070800"], "seconds", "2024-01-01 00:00:00+00:00"),
        ([1704067200000, 1704070800000], "milliseconds", "2024-01-01 00:00:00+00:00"),
        (["1704067200000000000", "1704067200000001000"], "nanoseconds", "2024-01-01 00:00:00+00:00"),
        (["20240131", "20240201"], "%Y%m%d", "2024-01-31"),
        (["202411", "202412", "202501"], "%Y%m", "2024-11-01"),
        (["45292", "45293"], "numbers", "45292"),
        (["31-12-2023", "01-01-2024"], "day-first", "2023-12-31"),
    ],
)
def test_what_is_found_out_is_told_and_kept(cells: list[object], form: str, first: str) -> None:
    column = read(*cells)
    assert column.form == form and column.note
    assert column.written(int(column.stamps[0])) == first
    again = read(cells[0], form=form)  # of other data, by the form of a saved run
    assert again.stamps[0] == column.stamps[0] and again.are == column.are


def test_numbers_by_a_form_that_is_given() -> None:
    assert read("45292.25", form="excel").stamps[0] == read("2024-01-01 06:00").stamps[0]
    assert read("1704067200", form="numbers").are == "numbers"
    with pytest.raises(DataError, match=r"line 3.*'soon'.*seconds since 1970"):
        read("1704067200", "soon", form="seconds")
    assert read("2024-01-01").note == "" and read("2024-01-01").form is None


def test_no_step_leads_beyond_the_calendar() -> None:
    last = int(read("9999-12-01").stamps[0])
    for step in (Step(1, "months"), Step(40 * DAY, "microseconds")):
        with pytest.raises(DataError, match="beyond the year 9999"):
            step.after(last, 3)


def test_years_of_two_digits_are_told() -> None:
    assert read("Sept-98", "Oct-98").note == "times such as 'Sept-98' are read as 1998-09-01"
    assert read("Sep 1998", "Oct 1998").note == ""
    with pytest.raises(DataError, match="'Smarch 2024'"):
        read("Jan 2024", "Smarch 2024")


def test_days_without_weekends_are_business_days() -> None:
    days = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]")
    week = days[np.is_busday(days)].astype("datetime64[us]").astype(np.int64)
    step = step_of([week], "times")
    assert step == Step(1, "business days") and str(step) == "1 business day"
    assert step_of([days.astype("datetime64[us]").astype(np.int64)], "times") == Step(DAY, "microseconds")
    assert step_of([week[:10]], "times") == Step(DAY, "microseconds")  # too short to tell
    assert step.after(int(week[0]), len(week) - 1) == week[1:].tolist()
    assert step.between(int(week[3]), week).tolist() == [k - 3 for k in range(len(week))]
    saturday = int(days[5].astype("datetime64[us]").astype(np.int64))
    assert step.between(int(week[0]), np.array([saturday])).tolist() == [4.5]
    assert step.seasons() == (5, 260)
    noon = week + DAY // 2
    assert step.moved(int(noon[4]), 1) == noon[5]
