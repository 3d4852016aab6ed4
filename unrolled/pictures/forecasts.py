"""Pictures of forecasts: what came before, the median with its intervals, what came; backtests; metrics by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unrolled.pictures.kinds import Number, Plot, Series, Table, Tick

PERCENT = (95, 80, 50)
TICKS = 5  # times that are named along the axis
ZONE = "+00:00"
MOST_TICKS = 12  # steps that are named
ROWS = 48  # of a table of steps
Line = Mapping[str, Any]  # a forecast as JSON: times, forecast, low_50 .. high_95


def forecast(
    before: Sequence[float | None], times: Sequence[str], line: Line, came: Sequence[float], name: str
) -> Plot:
    """A forecast with 50, 80 and 95 % intervals behind the values before it, of which `times` are the times."""
    n, ahead = len(before), list(line["times"])
    past, steps = _numbers(range(n)), _numbers(range(n, n + len(ahead)))
    lines = [Series(name="history", x=past, y=_numbers(before)), *_bands(line, steps)]
    lines.append(Series(name="median forecast", x=steps, y=_first(line["forecast"])))
    if len(came):
        lines.append(Series(name="observed", x=steps[: len(came)], y=_numbers(came), style="dashed"))
    seen = " and the observed values" if len(came) else ""
    return Plot(
        title=f"Forecast of {name}, {_short(ahead[0])} to {_short(ahead[-1])}"
        + (" UTC" if ahead[0].endswith(ZONE) else ""),
        alt=f"The history, the median forecast with its 50, 80 and 95 % intervals{seen}.",
        x_label="time", y_label=name, series=lines, x_ticks=ticks([*times, *ahead]),
    )  # fmt: skip


def backtest(values: Sequence[float | None], times: Sequence[str], lines: Mapping[int, Line], name: str) -> Plot:
    """Forecasts from several places of a series beside what came; `lines` are by the place where they begin."""
    series = [Series(name="observed", x=_numbers(range(len(values))), y=_numbers(values))]
    x, y, low, high = (list[Any]() for _ in range(4))
    for begin, line in sorted(lines.items()):  # a gap between two, so that no line joins them
        x += [*_numbers(range(begin, begin + len(line["times"]))), begin + len(line["times"]) - 0.5]
        for all_of, key in ((y, "forecast"), (low, "low_80"), (high, "high_80")):
            all_of += [*_first(line[key]), None]
    series.append(Series(name="80 % interval", x=x, y=y, low=low, high=high, style="band"))
    series.append(Series(name="median forecast", x=x, y=y))
    return Plot(
        title=f"Backtest of {name}: {len(lines)} forecasts",
        alt="The observed values, and forecasts from several times, each made from what came before it.",
        x_label="time", y_label=name, series=series, x_ticks=ticks(times),
    )  # fmt: skip


def backtests(rows: Sequence[tuple[str, str, Mapping[str, float]]], several: bool) -> Table:
    """The metrics of each forecast: the series, its first time, and what was measured."""
    columns = [*(["series"] if several else []), "first step", "MAE", "RMSE", "MASE", "80 % coverage"]
    keys = ("mae", "rmse", "mase", "coverage_80")
    cells: list[list[str | float | int | None]] = [
        [*([name] if several else []), time, *(_rounded(found[key]) for key in keys)] for name, time, found in rows
    ]
    return Table(title="Backtest", alt="Metrics of each forecast of the backtest.", columns=columns, rows=cells)


def by_step(found: Sequence[Mapping[str, float]], split: str) -> dict[str, Any]:
    """How errors and coverage change along the horizon."""
    steps = [float(h + 1) for h in range(len(found))]
    coverage = [
        Series(name=f"{percent} %", x=steps, y=[each[f"coverage_{percent}"] for each in found]) for percent in PERCENT
    ]
    n = min(len(found), ROWS)
    places = sorted({round(k * (len(found) - 1) / max(n - 1, 1)) for k in range(n)})
    apart = max(1, -(-len(found) // MOST_TICKS))
    whole = [Tick(at=float(h), name=str(h)) for h in range(apart, len(found) + 1, apart)]
    keys = ("mae", "rmse", "mase", "coverage_50", "coverage_80", "coverage_95")
    rows: list[list[str | float | int | None]] = [[h + 1, *(_rounded(found[h][key]) for key in keys)] for h in places]
    return {
        "horizon-1-error": Plot(
            title="Error by step of the horizon", alt=f"MASE by step of the horizon on the {split} data.",
            x_label="steps ahead", y_label="MASE", series=[Series(name="MASE", x=steps, y=[e["mase"] for e in found])],
            x_ticks=whole,
        ),
        "horizon-2-coverage": Plot(
            title="Coverage by step of the horizon", alt="Share of values inside each interval, by step.",
            x_label="steps ahead", y_label="observed coverage", series=coverage, x_ticks=whole,
        ),
        "horizon-3-table": Table(
            title="Metrics by step of the horizon", alt=f"Metrics by step of the horizon on the {split} data.",
            columns=["steps ahead", "MAE", "RMSE", "MASE", *(f"{percent} % coverage" for percent in (50, 80, 95))],
            rows=rows,
        ),
    }  # fmt: skip


def ticks(times: Sequence[str]) -> list[Tick]:
    """A few times along the axis; hours are left out where all are alike, and years of hours, which the title has.

    >>> [tick.name for tick in ticks(["2024-01-01", "2024-01-02"])]
    ['2024-01-01', '2024-01-02']
    >>> [tick.name for tick in ticks(["2024-01-01 00:30:00", "2024-01-01 01:00:00"])]
    ['01-01 00:30', '01-01 01:00']
    """
    n = len(times)
    places = sorted({round(k * (n - 1) / (TICKS - 1)) for k in range(TICKS)}) if n else []
    names = [_short(times[place]) for place in places]
    for letters in (7, 10):  # months, days
        short = [name[:letters] for name in names]
        if len(set(short)) == len(short) and (letters == 10 or all(name[7:] == "-01" for name in times)):
            names = short
            break
    else:
        names = [name[5:] if len(name) > 10 else name for name in names]
    return [Tick(at=float(place), name=name) for place, name in zip(places, names)]


def _short(time: str) -> str:
    """Without seconds that are none, and the zone, which is UTC."""
    return time.removesuffix(ZONE).removesuffix(":00")


def _bands(line: Line, steps: list[float]) -> list[Series]:
    return [
        Series(
            name=f"{percent} % interval", x=steps, y=_first(line["forecast"]), low=_first(line[f"low_{percent}"]),
            high=_first(line[f"high_{percent}"]), style="band",
        )
        for percent in PERCENT
    ]  # fmt: skip


def _first(values: Sequence[Any]) -> list[Number]:
    """The first number of each step."""
    return [value[0] if isinstance(value, list) else value for value in values]


def _numbers(values: Any) -> list[Any]:
    return [None if value is None or value != value else float(value) for value in values]


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
