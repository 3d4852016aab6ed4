"""Several columns of numbers as one condition: `size:number,age:number` is a column of its own, `3,41.5`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from unrolled.core.errors import MissingColumn, UsageError
from unrolled.core.front import option
from unrolled.data.files.cell_values import as_number
from unrolled.data.files.tables import Table

NUMBER = ":number"


def number_columns(condition: str | None) -> list[str]:
    """The names of columns of numbers; none where a condition is a class.

    >>> number_columns("size:number,age:number"), number_columns("kind")
    (['size', 'age'], [])
    """
    if condition is None or NUMBER not in condition:
        return []
    names = [each.strip() for each in condition.split(",")]
    if wrong := [each for each in names if not each.endswith(NUMBER)]:
        raise UsageError(f"invalid condition {condition}: expected {wrong[0]}{NUMBER}, or one column of classes alone")
    return [each.removesuffix(NUMBER) for each in names]


class JoinedColumns:
    """A table with the numbers of some columns as one more, called as the condition."""

    def __init__(self, table: Table, condition: str) -> None:
        self._table, self._condition, self._numbers = table, condition, number_columns(condition)
        self.name, self.notes = table.name, table.notes

    def columns(self) -> list[str]:
        own = self._table.columns()
        for name in self._numbers:
            if name not in own:
                raise MissingColumn(self.name, name, option("data.condition"), own)
        return [*(name for name in own if name not in self._numbers), self._condition]

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        plain = [name for name in columns if name != self._condition]
        for number, cells in self._table.rows([*plain, *self._numbers]):
            known, told = dict(zip(plain, cells)), cells[len(plain) :]
            if self._condition in columns:
                place = self.place(number)
                values = [as_number(c, f"{place}, column '{n}'") for n, c in zip(self._numbers, told, strict=True)]
                known[self._condition] = ",".join(f"{value:.9g}" for value in values)
            yield number, tuple(known[name] for name in columns)

    def place(self, number: int) -> str:
        return self._table.place(number)

    def digest(self) -> str:
        return self._table.digest()


def with_joined(table: Table, condition: str | None) -> Table:
    """The table in which a condition is one column."""
    return JoinedColumns(table, condition) if condition is not None and number_columns(condition) else table
