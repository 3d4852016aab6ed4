"""Series in data frames: an index of times is a column, and what a library calls missing is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from unrolled.core.errors import DataError
from unrolled.data.time_series.prepare import open_source
from unrolled.data.time_series.reading import SeriesReading
from unrolled.runs.guess import guess_task

N = 30
VALUES = np.arange(N) % 7 + 0.5
DAYS = pd.date_range("2024-01-01", periods=N, name="day")
SHOPS = pd.MultiIndex.from_product([["a", "b"], DAYS[:15]], names=["shop", "day"])
STEP = 86_400_000_000

INDEXED: dict[str, Any] = {
    "a frame": pd.DataFrame({"value": VALUES}, DAYS),
    "an index without a name": pd.DataFrame({"value": VALUES}, DAYS.rename(None)),
    "values": pd.Series(VALUES, DAYS, name="value"),
    "values without a name": pd.Series(VALUES, DAYS),
    "periods": pd.Series(VALUES, DAYS.to_period("D")),
    "dates": pd.Series(VALUES, pd.Index([each.date() for each in DAYS])),
    "with a zone": pd.DataFrame({"value": VALUES}, DAYS.tz_localize("UTC")),
}


@pytest.mark.parametrize("name", INDEXED)
def test_an_index_of_times_is_the_column_of_times(name: str) -> None:
    found = open_source(INDEXED[name], SeriesReading())
    assert found.reading.time is not None and found.reading.target == "value"
    assert found.column.zoned == (name == "with a zone")
    (series,) = found.series
    assert (np.diff(series.stamps) == STEP).all() and series.values[:, 0].tolist() == VALUES.tolist()
    assert found.column.written(int(series.stamps[0])).startswith("2024-01-01")
    assert guess_task(INDEXED[name], {}).task == "forecast"


def test_an_index_of_series_and_times_is_two_columns() -> None:
    found = open_source(pd.DataFrame({"value": VALUES}, SHOPS), SeriesReading())
    assert (found.reading.id, found.reading.time) == ("shop", "day")
    assert [each.name for each in found.series] == ["a", "b"]


@pytest.mark.parametrize("values", [pd.Series(VALUES), pl.Series(VALUES), VALUES, VALUES.tolist()])
def test_values_without_times_are_steps(values: Any) -> None:
    found = open_source(values, SeriesReading())
    assert found.reading.time is None and found.series[0].values[:, 0].tolist() == VALUES.tolist()


def test_an_index_of_numbers_is_no_column() -> None:
    frame = pd.DataFrame({"day": DAYS, "value": VALUES}, index=np.arange(N)[::-1])
    assert open_source(frame, SeriesReading()).series[0].values[:, 0].tolist() == VALUES.tolist()


def test_missing_values_of_pandas_are_missing() -> None:
    numbers = pd.array([None if k == 4 else k for k in range(N)], dtype="Int64")
    values = open_source(pd.DataFrame({"day": DAYS, "value": numbers}), SeriesReading()).series[0].values[:, 0]
    assert np.flatnonzero(np.isnan(values)).tolist() == [4]
    gone = pd.Series(DAYS).where(np.arange(N) != 5)
    with pytest.raises(DataError, match=r"row 6, column 'day': found NaT, expected a time stamp; fill it in"):
        open_source(pd.DataFrame({"day": gone, "value": VALUES}), SeriesReading())
