"""Pictures of forecasts: what came before, the median with its intervals, what came; and errors by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unrolled.pictures.kinds import Number, Plot, Series

PERCENT = (95, 80, 50)


def forecast(before: Sequence[float], line: Mapping[str, Any], came: Sequence[float], name: str, split: str) -> Plot:
    """A forecast with 50, 80 and 95 % intervals; steps are counted from its beginning."""
    past = [float(t) for t in range(-len(before) + 1, 1)]
    ahead = [float(t) for t in range(1, len(line["times"]) + 1)]
    lines = [Series(name="history", x=past, y=_numbers(before))]
    for percent in PERCENT:
        low, high = (_first(line[f"{end}_{percent}"]) for end in ("low", "high"))
        lines.append(Series(name=f"{percent} % interval", x=ahead, y=_first(line["forecast"]), low=low, high=high))
    if len(came):
        lines.append(Series(name="observed", x=ahead[: len(came)], y=_numbers(came), style="dashed"))
    times = line["times"]
    return Plot(
        title=f"Forecast of {name} from {times[0]} to {times[-1]}",
        alt=f"The {split} data: the history, the median forecast with its intervals, and the observed values.",
        x_label="steps from the last known value", y_label=name, series=lines,
    )  # fmt: skip


def by_step(found: Sequence[Mapping[str, float]], split: str) -> dict[str, Plot]:
    """How errors and coverage change along the horizon."""
    steps = [float(h + 1) for h in range(len(found))]
    coverage = [
        Series(name=f"{percent} %", x=steps, y=[each[f"coverage_{percent}"] for each in found]) for percent in PERCENT
    ]
    return {
        "error-by-step": Plot(
            title="Error by step of the horizon", alt=f"MASE by step of the horizon on the {split} data.",
            x_label="steps ahead", y_label="MASE", series=[Series(name="MASE", x=steps, y=[e["mase"] for e in found])],
        ),
        "coverage": Plot(
            title="Coverage by step of the horizon", alt="Share of values inside each interval, by step.",
            x_label="steps ahead", y_label="observed coverage", series=coverage,
        ),
    }  # fmt: skip


def _first(values: Sequence[Any]) -> list[Number]:
    """The first number of each step."""
    return [value[0] if isinstance(value, list) else value for value in values]


def _numbers(values: Sequence[float]) -> list[Number]:
    return [None if value != value else float(value) for value in values]
