"""One drawing as the moves of a pen [T, 5]: (dx, dy, down, lift, end), the way from the point before and what the pen
does after it. Where the pen first touches the paper is not among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError, some
from unrolled.data.files.cell_values import kind_of
from unrolled.data.given_splits import ALL
from unrolled.data.sources.strokes import STROKE_COLUMNS, TEXT_COLUMNS, as_ways

Moves = NDArray[np.float32]  # [T, 5]

DOWN, LIFT, END = 2, 3, 4  # columns
FARTHEST = 1e18  # of a move, whose square single precision must hold


class Drawing(NamedTuple):
    """A drawing in its own units."""

    moves: Moves
    text: str | None
    place: str
    part: str = ALL


def as_moves(value: Any, place: str) -> Moves:
    """A drawing as [T, 5], in its own units.

    >>> as_moves([[0, 0, 0], [3, 4, 1], [1, 0, 1]], "line 1").tolist()
    [[3.0, 4.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0, 1.0]]
    """
    rows = np.asarray(value) if isinstance(value, np.ndarray) else None
    first = value[0] if isinstance(value, list) and value else None
    if isinstance(first, list) and len(first) == 5 and not isinstance(first[0], list):
        rows = _table(value, place)
    if rows is not None and rows.ndim == 2 and rows.shape[1] == 5:
        value = _of_five(rows, place)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not np.isfinite(value).all():
        row = int(np.argwhere(~np.isfinite(value))[0][0])
        raise DataError(
            f"{place}, point {row}: found {value[row].tolist()}, expected finite numbers; remove the drawing"
        )
    ways = as_ways(value, place)  # [T, 3]
    if (far := np.abs(ways[:, :2]).max(axis=1) > FARTHEST).any():
        point = int(np.argmax(far))
        raise DataError(
            f"{place}, point {point}: found the move {ways[point, :2].tolist()}, expected at most {FARTHEST:.0e}"
        )
    if not ways[:, 2].any():
        raise DataError(f"{place}: the pen is never lifted; expected 1 in the third column where a stroke ends")
    if ways[0, 2] == 1:  # a dot: the pen goes nowhere before it is lifted
        ways[0, :2] = 0
    else:
        ways = ways[1:]
    moves = np.zeros((len(ways), 5), np.float32)
    moves[:, :2] = ways[:, :2]
    moves[:, LIFT] = ways[:, 2]
    moves[:, DOWN] = 1 - ways[:, 2]
    moves[-1, DOWN:] = 0, 0, 1
    return moves


def _table(value: list[Any], place: str) -> NDArray[Any]:
    try:
        return np.array(value, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{place}: expected rows [dx, dy, down, lift, end] of numbers") from None


def _of_five(rows: NDArray[Any], place: str) -> NDArray[np.float64]:
    """Stroke-5 as stroke-3: up to the first row that ends the drawing, which may be a row of its own."""
    states = rows[:, 2:]
    if not np.isin(states, (0, 1)).all() or (states.sum(axis=1) != 1).any():
        wrong = next(t for t, row in enumerate(states) if not np.isin(row, (0, 1)).all() or row.sum() != 1)
        raise DataError(
            f"{place}, point {wrong}: found the pen states {states[wrong].tolist()}, expected one 1 of three"
        )
    ends = np.flatnonzero(rows[:, END])
    last = int(ends[0]) if len(ends) else len(rows) - 1
    alone = len(ends) > 0 and last > 0 and not rows[last, :2].any()  # a row that says nothing but the end
    found = np.array(rows[: last + (not alone)], np.float64)
    return np.column_stack([found[:, :2], 1 - found[:, DOWN]])


def placed(moves: NDArray[Any]) -> list[NDArray[np.float64]]:
    """The strokes of moves [T, 5] as places [n, 2] each, from (0, 0) on.

    >>> [stroke.tolist() for stroke in placed(as_moves([[0, 0, 0], [3, 4, 1], [1, 0, 1]], "line 1"))]
    [[[0.0, 0.0], [3.0, 4.0]], [[4.0, 4.0]]]
    """
    places = np.concatenate([np.zeros((1, 2)), np.cumsum(np.asarray(moves[:, :2], np.float64), axis=0)])  # [T+1, 2]
    cuts = np.flatnonzero(moves[:-1, DOWN] == 0) + 2
    return list(np.split(places, cuts))


def scaled(moves: Moves, scale: float) -> Moves:
    return np.column_stack([moves[:, :2] / scale, moves[:, DOWN:]]).astype(np.float32)


def drawing_of(value: Any, place: str) -> Drawing:
    """A drawing as JSON has it, with its text or without."""
    if not isinstance(value, Mapping):
        return Drawing(as_moves(value, place), None, place)
    column = next((name for name in STROKE_COLUMNS if name in value), None)
    if column is None:
        raise DataError(f"{place}: found {some(value)}, expected 'strokes' and perhaps 'text'")
    text = next((value[name] for name in TEXT_COLUMNS if name in value), None)
    if not isinstance(text, str | int | float | None):
        raise DataError(f"{place}: the text is {kind_of(text)}, expected a string")
    return Drawing(as_moves(value[column], place), None if text is None else str(text), place)
