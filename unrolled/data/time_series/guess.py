"""Whether a table holds series along time: a column of times, or nothing but numbers down one column."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice, pairwise
from typing import Any

from unrolled.core.errors import UnrolledError
from unrolled.core.task import Guess
from unrolled.data.builtin_sets import builtin_holds
from unrolled.data.files.tables import Table
from unrolled.data.look import Look
from unrolled.data.reading import names_of
from unrolled.data.time_series.reading import SeriesReading
from unrolled.data.time_series.table import IDS, TIMES, kinds_of, settled, year_and_month

ROWS = 300
MANY = 10  # rows of each word of a column that is a description of series
LABELS = ("clean", "label", "class", "category", "sentiment", "text", "sentence", "tags", "labels")


def guess_series(look: Look, given: Mapping[str, Any]) -> Guess | None:
    if look.builtin:
        return Guess(0.9, "it is a series along time") if builtin_holds(look.builtin, "series") else None
    if look.table is None or look.splits:
        return None
    of_series = {key.removeprefix("series."): value for key, value in given.items()}
    known = {key: of_series[key] for key in SeriesReading.model_fields if key in of_series}
    asked = SeriesReading.parse(known)  # an invalid value is refused, whatever the data is
    try:
        return _guess(look.table, given, asked, known)
    except UnrolledError:
        return None


def _guess(
    table: Table, given: Mapping[str, Any], asked: SeriesReading, known: Mapping[str, Any]
) -> Guess | None:  # fmt: skip
    names = table.columns()
    if any(name.lower() in LABELS for name in names):
        return None
    kinds = kinds_of(table, names)
    if len(names) == 1:
        return Guess(0.6, "it has one column of numbers") if kinds[names[0]] == "numbers" else None
    if (both := year_and_month(names, kinds)) and not given and _rise(table, both):
        return Guess(0.9, f"columns '{both[0]}' and '{both[1]}' hold times, and others hold numbers")
    reading = settled(table, names, asked)
    if reading.time is None or not _are_times(table, reading.time, kinds[reading.time], reading.id):
        return None
    rest = [name for name in names if name not in (reading.time, reading.id) and kinds[name] == "other"]
    words = [name for name in rest if name.lower() not in IDS]
    if words and set(names_of(reading.target, names)) & set(words):
        return None
    if words and not known and not (reading.id and _few(table, words)):  # a class or a text of each row
        return None
    return Guess(0.9, f"column '{reading.time}' holds times, and others hold numbers")


def _rise(table: Table, names: list[str]) -> bool:
    """Whether the numbers of some columns, taken together, rise from row to row."""
    rows = [[float(cell) for cell in cells] for _, cells in islice(table.rows(names), ROWS)]
    return all(before < after for before, after in pairwise(rows))


def _few(table: Table, names: list[str]) -> bool:
    """Whether columns hold few different words, beside series that another column identifies."""
    rows = [cells for _, cells in islice(table.rows(names), ROWS)]
    return all(MANY * len(set(column)) <= len(rows) for column in zip(*rows))


def _are_times(table: Table, name: str, kind: str, series: str | None) -> bool:
    """Dates, or whole numbers under a usual name that rise from row to row of each series."""
    if kind == "times":
        return True
    if kind != "numbers" or name.lower() not in TIMES:
        return False
    last: dict[str, float] = {}
    for _, cells in islice(table.rows([name, *([series] if series else [])]), ROWS):
        of, now = str(cells[-1]) if series else "", float(cells[0])
        if now <= last.get(of, now - 1):
            return False
        last[of] = now
    return True
