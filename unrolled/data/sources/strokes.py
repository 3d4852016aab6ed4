"""Strokes of a pen as vectors [T, 3]: the way (dx, dy) from the point before, and 1 where the pen is lifted after it.

| value | what it is |
|---|---|
| [[x, y], ..] | places of the pen in one stroke |
| [[[x, y], ..], [[x, y], ..]] | strokes, each a list of places |
| [[[x, ..], [y, ..]], ..] | strokes, each its x and its y (the drawings of Quick, Draw!) |
| [[dx, dy, up], ..] | ways and lifts, as they are |

Every drawing is divided by its larger side, so that it does not matter how large somebody writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError, MissingColumn
from unrolled.core.front import option
from unrolled.data.files.cell_values import as_number, as_numbers, is_gap, is_number
from unrolled.data.files.csv_table import CsvTable, Headerless
from unrolled.data.files.tables import Table
from unrolled.data.given_splits import ALL, given_part
from unrolled.data.pairs import Pair
from unrolled.data.reading import RecognitionReading
from unrolled.data.sources.vector_pairs import VectorPairs

STROKE_COLUMNS = ("strokes", "drawing", "points", "pen", "x", "input")
TEXT_COLUMNS = ("text", "transcript", "transcription", "word", "sentence", "target", "label", "digit", "class", "y")
PART_COLUMNS = ("part", "split", "set")


def as_strokes(value: Any, place: str) -> NDArray[np.float32]:
    """A drawing as [T, 3], divided by its larger side.

    >>> as_strokes([[[0, 0], [2, 0]], [[2, 4]]], "line 1").tolist()
    [[0.0, 0.0, 0.0], [0.5, 0.0, 1.0], [0.0, 1.0, 1.0]]
    """
    rows = as_ways(value, place)
    places = np.cumsum(rows[:, :2], axis=0)
    side = float((places.max(axis=0) - places.min(axis=0)).max())
    return np.column_stack([rows[:, :2] / (side or 1.0), rows[:, 2]]).astype(np.float32)  # [T, 3]


def as_ways(value: Any, place: str) -> NDArray[np.float64]:
    """A drawing as [T, 3], in its own units.

    >>> as_ways([[1, 1], [3, 1]], "line 1").tolist()
    [[0.0, 0.0, 0.0], [2.0, 0.0, 1.0]]
    """
    depth = _depth(value)
    if depth == 3:
        by_axis = any(len(stroke) in (2, 3) and len(stroke[0]) != 2 for stroke in value if len(stroke))
        strokes = [_numbers(stroke, place) for stroke in value]
        return _ways([_pairs(stroke[:2].T if by_axis else stroke, place) for stroke in strokes])
    if depth != 2:
        raise DataError(f"{place}: expected strokes as lists of points [x, y], or rows [dx, dy, up]")
    rows = _numbers(value, place)
    if rows.shape[1] == 2:
        return _ways([rows])
    if rows.shape[1] != 3 or not np.isin(rows[:, 2], (0, 1)).all():
        raise DataError(
            f"{place}: expected points [x, y] or rows [dx, dy, up] with up 0 or 1, found {rows[0].tolist()}"
        )
    return rows


def _depth(value: Any) -> int:
    """How deep lists are nested, by their first values."""
    if isinstance(value, np.ndarray):
        return value.ndim
    return 1 + _depth(value[0]) if isinstance(value, list | tuple) and len(value) else 0


def _numbers(value: Any, place: str) -> NDArray[np.float64]:
    rows = as_numbers(value, place).astype(np.float64, copy=False)
    if rows.ndim != 2 or 0 in rows.shape or not np.isfinite(rows).all():
        raise DataError(f"{place}: found points of shape {list(rows.shape)}, expected finite numbers [points, 2 or 3]")
    return rows


def _pairs(stroke: NDArray[np.float64], place: str) -> NDArray[np.float64]:
    if stroke.shape[1] != 2:
        raise DataError(f"{place}: found a stroke of shape {list(stroke.shape)}, expected points [x, y], or x and y")
    return stroke


def _ways(strokes: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    places = np.concatenate(strokes)  # [T, 2]
    up = np.zeros(len(places))
    up[np.cumsum([len(stroke) for stroke in strokes]) - 1] = 1
    ways = np.diff(places, axis=0, prepend=places[:1])
    return np.column_stack([ways, up])  # [T, 3]


def strokes_of(rows: Any) -> list[list[list[float]]]:
    """Rows [dx, dy, up] as strokes of points [x, y].

    >>> strokes_of([[0, 0, 0], [0.5, 0, 1], [0, 1, 1]])
    [[[0.0, 0.0], [0.5, 0.0]], [[0.5, 1.0]]]
    """
    ways = np.asarray(rows, np.float64)  # [T, 3]
    places = np.cumsum(ways[:, :2], axis=0)
    ends = np.flatnonzero(ways[:-1, 2]) + 1
    return [stroke.tolist() for stroke in np.split(places, ends)]


# ---- tables


def headed(table: Table) -> Table:
    """The table; where its first line is numbers, not names, its columns are called by their numbers."""
    if not isinstance(table, CsvTable) or isinstance(table, Headerless):
        return table
    first = [table.cell(cell) for cell in table.first()]
    return table.without_header() if len(first) > 2 and all(map(is_number, first[:-1])) else table


def open_stroke_table(table: Table, reading: RecognitionReading) -> VectorPairs:
    """A cell of strokes and a cell of text in each row, or numbers x, y, x, y, .. along a row and the text behind."""
    table = headed(table)
    names = table.columns()
    small = {name.lower(): name for name in names}
    text = reading.target_column or next((small[word] for word in TEXT_COLUMNS if word in small), names[-1])
    part = reading.part_column or next((small[word] for word in PART_COLUMNS if word in small), None)
    cell = reading.source_column or next((small[word] for word in STROKE_COLUMNS if word in small), None)
    for side, wanted in (("target", text), ("part", part), ("source", cell)):
        if wanted is not None and wanted not in names:
            raise MissingColumn(table.name, wanted, option(f"{side}_column"), names)
    wide = [name for name in names if name not in (text, part)]
    is_wide = isinstance(table, CsvTable) and (cell is None or len(wide) > 1)
    inputs = wide if is_wide or cell is None else [cell]
    if is_wide and len(inputs) % 2:
        raise DataError(
            f"{table.name}: {len(inputs)} numbers per row are not points x, y, x, y, ..; there is one too many"
        )
    columns = [*inputs, text, *([part] if part else [])]

    def read() -> Iterator[Pair]:
        for number, cells in table.rows(columns):
            place = table.place(number)
            values = cells[: len(inputs)]
            try:
                drawing = as_strokes(along(values, place) if is_wide else values[0], place)
            except DataError as error:
                source.skip(str(error))
                continue
            side = given_part(cells[-1], f"{place}, column '{part}'") if part else ALL
            yield Pair(drawing, reading.said(cells[len(inputs)]), place, side)
        source.notes.update(table.notes)

    settled = reading.updated({"target_column": text, "part_column": part, "source_column": None if is_wide else cell})
    source = VectorPairs(table.name, read, settled, dict(table.notes))
    return source


def along(cells: Sequence[Any], place: str) -> list[list[float]]:
    """Places from the cells x, y, x, y, .. of a row; empty ones at its end are left out."""
    filled = list(cells)
    while filled and is_gap(filled[-1]):
        filled.pop()
    numbers = [as_number(cell, place) for cell in filled]
    if not numbers or len(numbers) % 2:
        raise DataError(f"{place}: found {len(numbers)} numbers, expected points x, y, x, y, ..")
    return [numbers[i : i + 2] for i in range(0, len(numbers), 2)]
