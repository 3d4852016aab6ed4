"""Instances put together to bags: an example is then all instances of one bag, with the target that they share.

| a table with | instance |
|---|---|
| a column that names the bag of each row | the row: a text, or a vector of its numbers |
| a column of lists | an item: a text, a list of words, a vector (list of numbers), a series (list of lists) |
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError, UsageError, some
from unrolled.core.front import option
from unrolled.data.files.cell_values import as_series, shown
from unrolled.data.files.column_kinds import kinds_in
from unrolled.data.files.tables import Table
from unrolled.data.labelled import Bag, Labelled, LabelledSource
from unrolled.data.reading import Reading, names_of


def in_bags(source: LabelledSource) -> LabelledSource:
    """The bags of instances, in the order in which they first appear; a source of bags stays as it is."""
    if source.bags:
        return source
    bags = _Bags(source)
    return replace(source, read=bags.read, bags=True)


class _Bags:
    """Where the rows of each bag follow one another, one bag is held at a time; otherwise all."""

    def __init__(self, source: LabelledSource) -> None:
        self.source = source

    @cached_property
    def _in_order(self) -> bool:
        seen: set[str | None] = set()
        for bag, _ in groupby(self.source.read(), key=lambda each: each.bag):
            if bag in seen:
                return False
            seen.add(bag)
        return True

    def _grouped(self) -> Iterator[list[Labelled]]:
        if self._in_order:
            yield from (list(rows) for _, rows in groupby(self.source, key=lambda each: each.bag))
            return
        found: dict[str | None, list[Labelled]] = {}
        for each in self.source:
            found.setdefault(each.bag, []).append(each)
        while found:
            yield found.pop(next(iter(found)))

    def read(self) -> Iterator[Labelled]:
        n, first = 0, None
        for rows in self._grouped():
            if rows[0].bag is None:
                raise UsageError(
                    f"{self.source.name}: {option('bag')} names a column or an array of bags, but this data has none"
                )
            n, first = n + 1, first or rows[0]
            yield _joined(rows)
        if n == 1 and first is not None and self.source.answers != "none":
            raise DataError(
                f"{self.source.name}: all instances are in one bag, {shown(first.bag)}; at least two are needed"
            )


def _same(one: Any, other: Any) -> bool:
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else bool(one == other)


def _joined(rows: list[Labelled]) -> Labelled:
    first = rows[0]
    for each in rows[1:]:
        if not _same(each.answer, first.answer):
            raise DataError(
                f"{each.place}: the bag {shown(first.bag)} has the target {shown(each.answer)} here, but "
                f"{shown(first.answer)} before ({first.place}); all instances of a bag need the same target"
            )
        for what, own, other in (("group", each.group, first.group), ("split", each.part, first.part)):
            if own != other:
                raise DataError(
                    f"{each.place}: the bag {shown(first.bag)} is in the {what} {shown(own)} here, but in "
                    f"{shown(other)} before ({first.place}); a bag cannot be in two"
                )
    return first._replace(
        input=Bag(each.input for each in rows), place=f"{first.place}, bag {shown(first.bag)}", id=first.bag, bag=None
    )


# ---- in tables


def are_vectors(table: Table, reading: Reading, others: list[str], texts: Collection[str]) -> bool:
    """Whether the rows of bags hold numbers: the columns that are named, or several of those that are left, where none
    is called like texts."""
    if reading.column is not None:
        kinds = kinds_in(table, [name for name in names_of(reading.column, table.columns()) if name in others])
        return bool(kinds) and all(kind.numbers for kind in kinds.values())
    kinds = kinds_in(table, others)
    written = any(name.lower() in texts and not kinds[name].numbers for name in others)
    return not written and sum(kind.numbers for kind in kinds.values()) > 1


def numbers_among(table: Table, others: list[str]) -> list[str]:
    """The columns of numbers, of which vectors are made; a note on those that are left out."""
    kinds = kinds_in(table, others)
    if left := [name for name in others if not kinds[name].numbers]:
        table.notes[f"{table.name}: not used, because they hold no numbers: {some(left)}"] = None
    return [name for name in others if kinds[name].numbers]


def bags_are_cells(table: Table, reading: Reading) -> bool:
    """Whether the column of bags holds lists of instances."""
    if reading.bag is None:
        return False
    return isinstance(_as_list(next(table.rows([reading.bag]), (0, ("",)))[1][0]), list)


def first_instance(cell: Any) -> Any:
    return next(iter(_as_list(cell)), "")


def as_bag(cell: Any, here: str, read: Callable[[Any, str], Any]) -> Bag:
    """The instances in a list of them."""
    found = _as_list(cell)
    if not isinstance(found, list):
        raise DataError(f"{here}: found {shown(cell)}, expected a list of instances")
    return Bag(read(each, f"{here}, instance {number}") for number, each in enumerate(found, start=1))


def vector_or_series(cell: Any, here: str, wide: bool = False) -> NDArray[np.float64]:
    """A list of numbers as a vector [1, D] or, where it is `wide`, a series [T, 1]; a list of lists as a series [T, D].

    >>> vector_or_series([1, 2, 3], "here").shape, vector_or_series([[1, 2, 3]] * 5, "here").shape
    ((1, 3), (5, 3))
    """
    found = as_series(cell, here)
    return found if wide or np.ndim(cell) != 1 else found.T


def _as_list(cell: Any) -> Any:
    return cell.tolist() if isinstance(cell, np.ndarray) else list(cell) if isinstance(cell, tuple) else cell
