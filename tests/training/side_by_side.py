"""Several processes of a run as threads of this one: the same rows, sums and turns, without starting anything.

Noise of torch is drawn by one generator for all threads, so that what is trained here has no dropout.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from torch import Tensor

from unrolled.training.many import Many

Value = TypeVar("Value")


class Table:
    """Where threads put what the others are to see."""

    def __init__(self, n: int) -> None:
        self.n, self.turn, self.kept = n, threading.Barrier(n, timeout=60), [None] * n


class Thread:
    """A line between threads."""

    def __init__(self, rank: int, table: Table) -> None:
        self.rank, self.n, self.table = rank, table.n, table

    def each(self, value: Any) -> list[Any]:
        self.table.kept[self.rank] = value
        self.table.turn.wait()
        found = list(self.table.kept)
        self.table.turn.wait()
        return found

    def sum(self, values: Tensor) -> None:
        parts = self.each(values.clone())
        values.copy_(sum(parts[1:], parts[0]))  # type: ignore[arg-type]

    def first(self, value: Value) -> Value:
        return self.each(value)[0]  # type: ignore[no-any-return]

    def wait(self) -> None:
        self.each(None)

    def close(self) -> None: ...


def together(n: int, work: Callable[[Many], Value]) -> list[Value]:
    """What each of n processes comes to."""
    table, found, wrong = Table(n), dict[int, Any](), list[BaseException]()

    def one(rank: int) -> None:
        try:
            found[rank] = work(Many(Thread(rank, table)))
        except BaseException as error:
            wrong.append(error)
            table.turn.abort()

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    broken = [error for error in wrong if not isinstance(error, threading.BrokenBarrierError)]
    if wrong:
        raise (broken or wrong)[0]
    return [found[rank] for rank in range(n)]
