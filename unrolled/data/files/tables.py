"""Tables: csv, tsv, jsonl, json, parquet, data frames and Python lists, all as numbered rows of chosen cells.

Each table checks every row it hands out, for a bad cell in the last of a million rows is as bad as one in the first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from unrolled.core.errors import DataError, Misused
from unrolled.data.files.cell_values import kind_of, shown
from unrolled.data.given_splits import ALL, given_part

FRAME_ROWS = 1 << 14  # rows of a frame or a parquet file that are turned into Python values at a time


class Example(NamedTuple):
    """One text, or one array of whole numbers, with its class and the number of its line or row."""

    text: Any
    label: str | None
    number: int
    part: str = ALL


class Table(Protocol):
    """Named columns and numbered rows; `place` says where a row is, in the words of its kind of table."""

    name: str
    notes: dict[str, None]

    def columns(self) -> list[str]: ...
    def rows(self, columns: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]: ...
    def place(self, number: int) -> str: ...
    def digest(self) -> str: ...


class RecordTable:
    """Rows that are objects with named values, or bare texts: the lines of a .jsonl file, a .json or Python list."""

    def __init__(self, name: str, notes: dict[str, None]) -> None:
        self.name, self.notes = name, notes

    def columns(self) -> list[str]:
        for number, record in self.records():
            if isinstance(record, str):
                return ["text"]
            if isinstance(record, dict) and record:
                return list(record)
            raise DataError(
                f"{self.place(number)}: found {kind_of(record)}, expected an object with named values such as "
                '{"text": "..."}, or a string'
            )
        raise DataError(f"{self.name}: there are no rows in it; add the data")

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        for number, record in self.records():
            if isinstance(record, str) and list(columns) == ["text"]:
                yield number, (record,)
                continue
            if not isinstance(record, dict):
                expected = "an object with named values" if list(columns) != ["text"] else "a text"
                raise DataError(
                    f"{self.place(number)}: found {kind_of(record)}, expected {expected} as in the first row"
                )
            for column in columns:
                if column not in record:
                    raise DataError(f"{self.place(number)}, column '{column}': this row has no such value")
            yield number, tuple(record[column] for column in columns)

    def records(self) -> Iterator[tuple[int, Any]]:
        raise NotImplementedError

    def place(self, number: int) -> str:
        return f"{self.name}, row {number}"

    def digest(self) -> str:
        raise NotImplementedError


class ListTable(RecordTable):
    """A Python list of texts or of dicts with named values."""

    def __init__(self, rows: Iterable[Any], name: str = "the list") -> None:
        super().__init__(name, {})
        self._rows = rows

    def records(self) -> Iterator[tuple[int, Any]]:
        yield from enumerate(self._rows, start=1)

    def digest(self) -> str:
        result = hashlib.sha256()
        for row in self._rows:
            text = row if isinstance(row, str) else json.dumps(row, default=repr)
            result.update(f"{len(text)}:{text}".encode("utf-8", "surrogatepass"))
        return result.hexdigest()


class FrameTable:
    """A data frame of any library that narwhals knows (pandas, polars, arrow and more)."""

    def __init__(self, frame: Any, name: str = "the frame") -> None:
        self.name, self.notes = name, dict[str, None]()
        self._frame = frame

    def columns(self) -> list[str]:
        return list(self._frame.columns)

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        for start in range(0, self._height(), FRAME_ROWS):
            yield from enumerate(self._slice(columns, start), start=start + 1)

    def place(self, number: int) -> str:
        return f"{self.name}, row {number}"

    def digest(self) -> str:
        result = hashlib.sha256()
        for _, cells in self.rows(self.columns()):
            result.update(repr(cells).encode("utf-8", "surrogatepass"))
        return result.hexdigest()

    def _height(self) -> int:
        return len(self._frame)

    def _slice(self, columns: Sequence[str], start: int) -> Any:
        return self._frame.select(*columns)[start : start + FRAME_ROWS].iter_rows()


def frame_table(source: Any, what: str, otherwise: str) -> FrameTable:
    """A data frame as a table; `what` is wanted, and `otherwise` is what else could have been given."""
    import narwhals

    try:
        return FrameTable(narwhals.from_native(source, eager_only=True))
    except TypeError:
        kind = type(source).__name__
        raise Misused(f"{what} cannot be read from a {kind}; give a path, {otherwise} or a data frame") from None


def has_names(table: Table) -> bool:
    """Whether the rows of a table have named cells; those of a list may be bare texts."""
    records = table.records() if isinstance(table, RecordTable) else iter(())
    return not isinstance(next(records, (0, None))[1], str)


def table_examples(table: Table, column: str, condition: str | None, part: str | None = None) -> Iterator[Example]:
    """Every row, checked: a text that is not empty, a class and a split where a column of these was asked for."""
    for number, cells in table.rows([column, *(name for name in (condition, part) if name is not None)]):
        text = cells[0]
        if not isinstance(text, str) or not text:
            found = "an empty cell" if text is None or text == "" else f"{kind_of(text)} ({shown(text)})"
            what = "fill it in or remove the row" if text is None or text == "" else "write it in quotes"
            raise DataError(f"{table.place(number)}, column '{column}': found {found}, expected text; {what}")
        label = None
        if condition is not None:
            label = _label(cells[1], table, number, condition)
        side = ALL if part is None else given_part(cells[-1], f"{table.place(number)}, column '{part}'")
        yield Example(text, label, number, side)


def _label(cell: Any, table: Table, number: int, condition: str) -> str:
    if isinstance(cell, bool | int | np.integer):
        return str(cell)
    if isinstance(cell, str) and cell.strip():
        return cell.strip()
    found = (
        "an empty cell" if cell is None or isinstance(cell, str) or cell != cell else f"{kind_of(cell)} ({shown(cell)})"
    )
    raise DataError(f"{table.place(number)}, column '{condition}': found {found}, expected a class; fill it in")
