"""Pictures of forecasts, drawn and in the letters of a terminal."""

from __future__ import annotations

import math

from unrolled.pictures.blocks import plotted
from unrolled.pictures.draw import png, svg
from unrolled.pictures.forecasts import backtest, backtests, by_step, forecast, ticks
from unrolled.pictures.kinds import Plot, Series, read_picture

H = 6
TIMES = [f"2024-{month:02}-01" for month in range(1, 13)]
LINE = {"times": [f"2025-0{h + 1}-01" for h in range(H)], "forecast": [10.0 + h for h in range(H)]}
LINE |= {f"low_{p}": [10 - p / 20 + h for h in range(H)] for p in (50, 80, 95)}
LINE |= {f"high_{p}": [10 + p / 20 + h for h in range(H)] for p in (50, 80, 95)}
BEFORE = [5 + math.sin(t) for t in range(12)]


def test_a_forecast_has_its_history_one_median_and_bands_of_one_colour() -> None:
    picture = forecast([*BEFORE[:3], None, *BEFORE[4:]], TIMES, LINE, [11.0, 12.0], "sales")
    assert [series.style for series in picture.series] == ["line", "band", "band", "band", "line", "dashed"]
    assert picture.series[0].y[3] is None
    assert picture.series[4].x == [12.0 + h for h in range(H)]
    assert picture.x_ticks and picture.x_ticks[0].name == "2024-01"
    assert read_picture(picture.model_dump(mode="json")) == picture
    drawn = svg(picture)
    assert "2025-06" in drawn and "median forecast" in drawn
    assert drawn.count("fill: #d55e00") >= 3  # the bands have the colour of the line that follows them
    drawn = [png(picture.model_copy(update={"title": title})) for title in ("", "a title", "a long title " * 12)]
    assert all(each[:8] == b"\x89PNG\r\n\x1a\n" for each in drawn)
    heights = [int.from_bytes(each[20:24], "big") for each in drawn]
    assert heights[0] < heights[1] < heights[2]  # a title has a place of its own, and as many lines as it needs


def test_ticks_are_as_short_as_they_can_be() -> None:
    assert [tick.name for tick in ticks(["2024-05-31 00:00:00", "2024-06-01 00:00:00"])] == ["2024-05-31", "2024-06-01"]
    hours = [tick.name for tick in ticks([f"2024-05-31 {h:02}:00:00" for h in range(24)])]
    assert hours[0] == "05-31 00:00" and len(hours) == len(set(hours)) == 5
    assert ticks([]) == []


def test_forecasts_of_a_backtest_are_not_joined() -> None:
    picture = backtest(BEFORE, TIMES, {2: LINE, 8: LINE}, "sales")
    band, median = picture.series[1:]
    assert median.y.count(None) == band.low.count(None) == 2  # a gap behind each
    assert "2 forecasts" in picture.title
    metrics = {"mae": 1.0, "rmse": 2.0, "mase": 0.51234, "coverage_80": 1.0}
    table = backtests([("a", "2024-03-01", metrics)], several=True)
    assert table.columns[0] == "series" and table.rows == [["a", "2024-03-01", 1.0, 2.0, 0.5123, 1.0]]


def test_metrics_by_step_are_listed_too() -> None:
    each = dict.fromkeys(("mae", "rmse", "mase", "coverage_50", "coverage_80", "coverage_95"), 1.0)
    found = by_step([each] * 200, "test")
    assert len(found["horizon-3-table"].rows) == 48
    assert [found["horizon-3-table"].rows[k][0] for k in (0, -1)] == [1, 200]


def test_a_plot_in_letters_shows_lines_bands_and_names() -> None:
    lines = plotted(forecast(BEFORE, TIMES, LINE, (), "sales"), 70, 12).plain.splitlines()
    assert lines[0] == "Forecast of sales, 2025-01-01 to 2025-06-01"
    body = "".join(lines[1:13])
    assert all(shade in body for shade in "░▒▓") and any("\u2801" <= letter <= "\u28ff" for letter in body)
    assert max(map(len, lines[:-1])) <= 70
    assert "2024-01" in lines[-2] and "2025-06" in lines[-2]
    assert "95 % interval" in lines[-1] and "median forecast" in lines[-1]
    # a rising line begins at the bottom left and ends at the top right
    rising = plotted(Plot(title="t", series=[Series(name="a", x=[0, 1, 2], y=[0, 1, 2])]), 40, 8).plain.splitlines()
    assert rising[1].rstrip()[-1] > "\u2800" and rising[8][10] > "\u2800"


def test_nothing_and_one_number_can_be_plotted() -> None:
    assert plotted(Plot(title="t", series=[Series(name="a", x=[0], y=[None])])).plain == ""
    assert "t" in plotted(Plot(title="t", series=[Series(name="a", x=[0], y=[3.0])])).plain
