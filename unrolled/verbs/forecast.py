"""Forecast: the next steps of each series, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from unrolled.core.config import Config
from unrolled.core.verb import Forecasts, Result, Served, VerbSpec
from unrolled.pictures.forecasts import forecast
from unrolled.pictures.kinds import Plot

if TYPE_CHECKING:
    from unrolled.core.task import Given


class Request(Config):
    horizon: int | None = Field(None, ge=1)
    """Number of steps to forecast; none: as many as the run was trained for, which is also the maximum."""


def why_not(served: Served) -> str | None:
    able = isinstance(served.task, Forecasts)
    return None if able else f"models of the task '{served.name}' do not forecast series"


def call(served: Served, inputs: Sequence[Given], request: Request) -> Iterator[Result]:
    assert isinstance(served.task, Forecasts)
    return served.task.forecast(served.model, inputs, request.horizon)


def rows(result: Result) -> list[Result]:
    """One row for each time."""
    columns = {name: value for name, value in result.items() if isinstance(value, list) and name != "times"}
    named = {"series": result["series"]} if result["series"] else {}
    return [
        {**named, "time": time, **{name: value[h] for name, value in columns.items()}}
        for h, time in enumerate(result["times"])
    ]


def text(result: Result) -> str:
    """Times with the median and the 80 % interval."""
    lines = [result["series"]] if result["series"] else []
    for row in rows(result):
        lines.append(f"{row['time']}\t{row['forecast']}\t{row['low_80']}\t{row['high_80']}")
    return "\n".join(lines)


def picture(task: Forecasts, given: Given, result: Result) -> Plot:
    """The forecast behind the values before it."""
    name, times, values = task.before(given, len(result["times"]))
    return forecast(values, times, result, (), name)


VERB = VerbSpec(
    summary="Forecast the next steps of each series, with intervals.",
    request=Request,
    call=call,
    why_not=why_not,
    rows=rows,
    writers={"text": text},
)
