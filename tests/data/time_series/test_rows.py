"""Tables in columns: what is read quickly is read alike, and rows keep their places."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unrolled.core.errors import DataError, UsageError
from unrolled.data.files.tables import ListTable
from unrolled.data.time_series import rows as module
from unrolled.data.time_series.prepare import open_source
from unrolled.data.time_series.reading import SeriesReading
from unrolled.data.time_series.rows import PlainStamps, RowNumbers, Rows
from unrolled.data.time_series.stamp_forms import parse

TIMES = [datetime(2024, 1, 1) + timedelta(hours=k) for k in range(7)]
WRITTEN = {
    "iso": [str(each) for each in TIMES],
    "minutes": [each.isoformat("T", "minutes") for each in TIMES],
    "days": [str(each.date() + timedelta(days=k)) for k, each in enumerate(TIMES)],
    "datetimes": TIMES,
    "numbers": [*range(5, 12)],
    "digits": [str(k) for k in range(7)],
    "seconds": [str(1704067200 + k) for k in range(7)],
    "zoned": [f"{each}+02:00" for each in TIMES],
    "slashes": [f"{13 + k}/01/2024" for k in range(7)],
    "late": ["2024-01-01", "2024-01-02", "2024-01-03", "2024-1-4", "2024-1-5", "2024-1-6", "2024-1-7"],
}


@pytest.mark.parametrize("written", WRITTEN)
def test_stamps_that_are_read_some_at_a_time_are_those_of_the_whole_column(
    written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PIECE", 3)
    cells = WRITTEN[written]
    table = ListTable([{"time": cell, "value": k} for k, cell in enumerate(cells)])
    found = Rows(table, SeriesReading.parse({"time": "time", "target": "value"})).column
    wanted = parse(cells, lambda _: "")
    assert found.stamps.tolist() == wanted.stamps.tolist()
    assert found[1:] == wanted[1:]


def test_a_bad_cell_far_down_is_told_with_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", 3)
    lines: list[dict[str, Any]] = [{"time": str(each), "value": str(k)} for k, each in enumerate(TIMES)]
    reading = SeriesReading.parse({"time": "time", "target": "value"})
    lines[5]["value"] = "many"
    with pytest.raises(DataError, match="row 6, column 'value'"):
        Rows(ListTable(lines), reading)
    lines[5]["value"], lines[6]["time"] = "", "2024-13-01"
    with pytest.raises(DataError, match="row 7, column 'time'"):
        Rows(ListTable(lines), reading)


def test_numbers_are_those_of_python_also_where_a_value_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", 2)
    cells: list[Any] = ["1.5", " 2 ", "", "1e3", 3, 4.5, None, float("nan"), True]
    found = Rows(ListTable([{"value": cell} for cell in cells]), SeriesReading.parse({"target": "value"}))
    np.testing.assert_equal(np.array(found.columns["value"]), [1.5, 2.0, np.nan, 1000.0, 3.0, 4.5, np.nan, np.nan, 1.0])
    for bad in ("1_0", "inf", float("inf"), "1e300"):
        with pytest.raises(DataError):
            Rows(ListTable([{"value": 1.0}, {"value": bad}]), SeriesReading.parse({"target": "value"}))


def test_rows_know_their_numbers() -> None:
    numbers, wanted = RowNumbers(), [2, 3, 4, 7, 8, 20]
    numbers.extend(wanted[:2])
    numbers.extend(wanted[2:])
    assert [numbers[k] for k in range(len(wanted))] == wanted


def test_plain_stamps_refuse_what_is_mixed() -> None:
    stamps = PlainStamps()
    stamps.add(["2024-01-01"])
    with pytest.raises(module.NotPlain):
        stamps.add(["20240102"])


def test_series_of_a_table_that_is_sorted_and_of_one_that_is_not_are_the_same(tmp_path: Path) -> None:
    lines = [f"{name},{each},{k + ord(name)}" for name in "ba" for k, each in enumerate(TIMES)]
    for order in (lines, lines[::-1]):
        (tmp_path / "x.csv").write_text("\n".join(["id,time,value", *order]) + "\n")
        found = {each.name: each for each in open_source(tmp_path / "x.csv", SeriesReading()).series}
        assert sorted(found) == ["a", "b"]
        assert found["b"].values[:, 0].tolist() == [98.0 + k for k in range(7)]
        assert (np.diff(found["a"].stamps) > 0).all()


def opened(rows: list[dict[str, Any]]) -> Any:
    return open_source(rows, SeriesReading())


def test_a_column_that_tells_rows_of_one_time_apart_is_that_of_series() -> None:
    rows = [{"city": c, "date": f"2024-01-0{d}", "sky": "blue", "value": d} for c in "ab" for d in range(1, 5)]
    found = opened(rows)
    assert found.reading.id == "city" and [each.name for each in found.series] == ["a", "b"]
    assert any("'city', chosen by its content" in note for note in found.notes)
    assert opened([row for row in rows if row["city"] == "a"]).reading.id is None  # one series
    with pytest.raises(DataError, match="there again, one of 4 such"):  # two columns would do
        opened([{**row, "town": row["city"]} for row in rows])


def test_a_repeated_day_is_not_put_down_to_the_clock() -> None:
    for day, of_the_clock in (("2024-01-0{}", False), ("2024-01-01 0{}:00", True)):
        with pytest.raises(DataError, match="is there twice") as told:
            opened([{"date": day.format(1 + k // 2), "value": k} for k in (0, 1, 3)])
        assert ("daylight saving" in str(told.value)) == of_the_clock


def test_columns_that_go_on_are_told_of() -> None:
    rows = [{"date": f"2024-01-0{d}", "value": d if d < 7 else None, "sale": d % 2} for d in range(1, 9)]
    (told,) = [note for note in opened(rows).notes if "beforehand" in note]
    assert "sale has values after the last one of value" in told and "future" in told
    assert not any("beforehand" in note for note in opened(rows[:6]).notes)


def test_a_year_and_a_month_in_two_columns_are_refused_with_what_to_do() -> None:
    rows = [{"year": 2020 + k // 12, "month": k % 12 + 1, "value": k} for k in range(24)]
    with pytest.raises(UsageError, match="columns 'year' and 'month' hold the time together"):
        opened(rows)
    assert opened([{"year": row["value"], "value": row["month"]} for row in rows]).reading.time == "year"
