"""Figures that several processes compute together: which rows are a process's own, and what all of them come to.

Each process evaluates its rows of every batch and keeps totals and counts; `totals`, `filled` and `gathered` make of
them what one process would have. Outside of `shared_by` there is one process: all rows are its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

from torch import Tensor

from unrolled.core.batch import Batch

Value = TypeVar("Value")


class Others(Protocol):
    """The processes that share a piece of work; each of them calls the same methods in the same order."""

    rank: int
    n: int

    def added(self, values: Tensor) -> Tensor:
        """The sum of what all of them have, of one shape."""
        ...

    def gathered(self, value: Value) -> list[Value]:
        """What each of them has, by rank."""
        ...


_others: ContextVar[Others | None] = ContextVar("others", default=None)


@contextmanager
def shared_by(others: Others | None) -> Iterator[None]:
    """A block whose figures are computed together; None: by this process alone, be it inside of such a block."""
    token = _others.set(others)
    try:
        yield
    finally:
        _others.reset(token)


def span(n: int, rank: int, of: int) -> slice:
    """Which of n rows in a row are those of a process: equal shares, as far as that is possible.

    >>> [span(5, rank, 2) for rank in range(2)]
    [slice(0, 2, None), slice(2, 5, None)]
    """
    return slice(rank * n // of, (rank + 1) * n // of)


def own(n: int) -> slice:
    """Which of n rows are this process's."""
    others = _others.get()
    return slice(0, n) if others is None else span(n, others.rank, others.n)


def own_rows(batch: Batch) -> Batch | None:
    """The rows of a batch that are this process's; None: there are none."""
    if _others.get() is None:
        return batch
    rows = own(len(batch.x))
    return batch.part(rows) if rows.stop > rows.start else None


def totals(sums: Mapping[str, float]) -> Counter[str]:
    """The sums over all processes of numbers by name."""
    found: Counter[str] = Counter()
    for each in [sums] if (others := _others.get()) is None else others.gathered(dict(sums)):
        found.update(each)
    return found


def filled(values: Tensor) -> Tensor:
    """A tensor whose rows were filled each by one process, and are 0 in the others."""
    others = _others.get()
    return values if others is None else others.added(values)


def gathered(value: Value) -> list[Value]:
    """What each process has, by rank."""
    others = _others.get()
    return [value] if others is None else others.gathered(value)


def agreed(value: Value) -> Value:
    """What the first process has, such as its clock."""
    return gathered(value)[0]


def each_own(n: int, make: Callable[[slice], Sequence[Value]]) -> list[Value]:
    """What `make` gives for a span of n examples, one for each: every process makes its own, and all get all."""
    rows = own(n)
    with shared_by(None):
        made = list(make(rows)) if rows.stop > rows.start else []
    return [value for part in gathered(made) for value in part]
