"""Series in long tables: a row is a step, the rows of one id are a series, one column a channel."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np

from unrolled.core.errors import DataError, UsageError
from unrolled.core.front import option
from unrolled.data.files.cell_values import as_class, as_number, is_number, shown
from unrolled.data.files.missing_values import fill
from unrolled.data.files.tables import Table
from unrolled.data.given_splits import ALL, given_part
from unrolled.data.labelled import Labelled
from unrolled.data.reading import Answers, Reading
from unrolled.data.sources.row_values import answer_of, step_value


class _Series:
    """The rows of one id as they come."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.lines: list[int] = []
        self.times: list[Any] = []
        self.steps: list[list[float]] = []
        self.clean: list[list[float]] = []
        self.answer: Any = None
        self.group: str | None = None
        self.part = ALL
        self.bag: str | None = None


def read_long(
    table: Table, inputs: list[str], target: list[str], reading: Reading, answers: Answers
) -> Iterator[Labelled]:
    """The series in the order in which their ids first appear; all rows are held, for ids may be mixed."""
    if reading.id is None and answers not in ("series", "none"):
        raise UsageError(
            f"{table.name}: name the column that identifies the series of a long table with {option('id')}"
        )
    found: dict[str, _Series] = {}
    named = (reading.id, reading.time, reading.group, reading.part, reading.bag)
    extras = [name for name in named if name is not None]
    columns = [*inputs, *target, *extras]
    for number, cells in table.rows(columns):
        place = table.place(number)
        more = dict(zip(extras, cells[len(inputs) + len(target) :]))
        name = ALL if reading.id is None else as_class(more[reading.id], f"{place}, column '{reading.id}'")
        series = found.setdefault(name, _Series(number))
        series.lines.append(number)
        series.steps.append([step_value(c, reading.missing, place, column) for column, c in zip(inputs, cells)])
        _add_answer(series, cells[len(inputs) :], target, answers, reading, place, name)
        if reading.time is not None:
            series.times.append(_time(more[reading.time], f"{place}, column '{reading.time}'"))
        _add_extras(series, more, reading, place)
    for name, series in found.items():
        place = table.name if reading.id is None else f"{table.place(series.first)}, {reading.id} {shown(name)}"
        own = None if reading.id is None else name
        yield _example(table, series, reading, answers, place)._replace(id=own, bag=series.bag)


def steps_of(table: Table, reading: Reading) -> tuple[list[str], list[tuple[int, int]]]:
    """The ids as `read_long` meets them, and for each row the number of its series and of its step there."""
    wanted = [name for name in (reading.id, reading.time) if name is not None]
    ids: dict[str, int] = {}
    rows: list[tuple[int, float]] = []
    for number, cells in table.rows(wanted or table.columns()[:1]):
        place, more = table.place(number), dict(zip(wanted, cells))
        name = ALL if reading.id is None else as_class(more[reading.id], f"{place}, column '{reading.id}'")
        when = number if reading.time is None else _time(more[reading.time], f"{place}, column '{reading.time}'")
        rows.append((ids.setdefault(name, len(ids)), when))
    series = np.array([k for k, _ in rows], np.int64)
    order = np.lexsort((np.array([when for _, when in rows]), series))
    first = np.searchsorted(series[order], series)  # [n], where the series of each row begins in that order
    step = np.empty(len(rows), np.int64)
    step[order] = np.arange(len(rows))
    return list(ids), list(zip(series.tolist(), (step - first).tolist()))


def _add_answer(
    series: _Series, cells: Any, target: list[str], answers: Answers, reading: Reading, place: str, name: str
) -> None:
    if answers == "series":
        series.clean.append([step_value(c, reading.missing, place, column) for column, c in zip(target, cells)])
        return
    answer = answer_of(cells, target, answers, reading, place)
    if len(series.lines) == 1:
        series.answer = answer
    elif not np.array_equal(series.answer, answer):
        raise DataError(
            f"{place}, column '{target[0]}': found {shown(cells[0])}, but {shown(name)} had another target "
            "before; all rows of a series need the same target"
        )


def _add_extras(series: _Series, more: dict[str, Any], reading: Reading, place: str) -> None:
    if reading.group is not None:
        group = as_class(more[reading.group], f"{place}, column '{reading.group}'")
        if len(series.lines) > 1 and group != series.group:
            raise DataError(
                f"{place}, column '{reading.group}': found {shown(group)}, but the series was of "
                f"{shown(series.group)} before; a series cannot be in two groups, so name the column that "
                f"identifies series with {option('id')}"
            )
        series.group = group
    if reading.part is not None:
        part = given_part(more[reading.part], f"{place}, column '{reading.part}'")
        if len(series.lines) > 1 and part != series.part:
            raise DataError(f"{place}, column '{reading.part}': a series cannot be in two splits")
        series.part = part
    if reading.bag is not None:
        bag = as_class(more[reading.bag], f"{place}, column '{reading.bag}'")
        if len(series.lines) > 1 and bag != series.bag:
            raise DataError(f"{place}, column '{reading.bag}': a series cannot be in two bags")
        series.bag = bag


def _time(cell: Any, here: str) -> float:
    if is_number(cell):
        return as_number(cell, here)
    try:
        when = cell if isinstance(cell, datetime) else datetime.fromisoformat(str(cell).strip())
    except ValueError:
        raise DataError(f"{here}: found {shown(cell)}, expected a number or a time such as 2024-05-31 12:00") from None
    when = when.astimezone(UTC) if when.tzinfo is not None else when
    return (when.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds()


def _example(table: Table, series: _Series, reading: Reading, answers: Answers, place: str) -> Labelled:
    values, clean = np.array(series.steps), np.array(series.clean)  # [T, D]
    if series.times:
        order = np.argsort(series.times, kind="stable")
        times = np.array(series.times)[order]
        if len(again := np.flatnonzero(np.diff(times) == 0)):
            number = series.lines[int(order[again[0] + 1])]
            raise DataError(f"{table.place(number)}, column '{reading.time}': this time occurs twice in one series")
        values, clean = values[order], clean[order] if len(clean) else clean
    x = fill(values, reading.missing, place)  # [T, D]
    if answers != "series":
        return Labelled(x, series.answer, place, series.group, series.part)
    return Labelled(x, fill(clean, reading.missing, place), place, series.group, series.part)  # [T, D], [T, D']
