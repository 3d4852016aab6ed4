"""Work that a request waits for: done in the thread of a run, its results awaited in the loop of the server."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from unrolled.serve.refused import too_late

if TYPE_CHECKING:
    from torch import Tensor

    from unrolled.decode.together import Row
    from unrolled.runs.run import Run


class Job:
    """`start(run)` gives results one by one, between which the thread looks after others."""

    def __init__(self, start: Callable[[Run], Iterator[Any]], seconds: float) -> None:
        self.start, self.seconds = start, seconds
        self.deadline = time.monotonic() + seconds
        self.cancelled = False
        self._items: deque[Any] = deque()
        self._error: BaseException | None = None
        self._ended = False
        self._loop, self._ready = asyncio.get_running_loop(), asyncio.Event()
        self._woken = False

    # ---- in the thread of the run

    @property
    def unwanted(self) -> bool:
        return self.cancelled or time.monotonic() > self.deadline

    def put(self, item: Any) -> None:
        self._items.append(item)
        self._wake()

    def end(self, error: BaseException | None = None) -> None:
        if self.cancelled:
            self._items.clear()
        self._error, self._ended = None if self.cancelled else error, True
        self._wake()

    def _wake(self) -> None:
        if self._woken:
            return
        self._woken = True
        try:
            self._loop.call_soon_threadsafe(self._ready.set)
        except RuntimeError:  # the server has ended
            self.cancelled = True

    # ---- in the loop of the server

    def cancel(self) -> None:
        """Nobody waits for it any longer."""
        self.cancelled = True

    async def some(self) -> list[Any]:
        """The results that there are, at least one; none: there will be no more."""
        while True:
            if self._items:
                return [self._items.popleft() for _ in range(len(self._items))]
            if self._ended:
                self._raise()
                return []
            self._ready.clear()
            self._woken = False
            if self._items or self._ended:
                continue
            left = self.deadline - time.monotonic()
            try:
                await asyncio.wait_for(self._ready.wait(), max(left, 0) + 0.05)
            except TimeoutError:
                self.cancel()
                raise too_late(self.seconds) from None

    def _raise(self) -> None:
        """Raise what went wrong, which is not kept: its traceback leads back to this job."""
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
        finally:
            del error

    async def all(self) -> list[Any]:
        """All results."""
        found: list[Any] = []
        while some := await self.some():
            found += some
        return found


class Writing(Job):
    """Texts that are written beside those of other requests: `begin(run)` gives their rows, and `read(i, y)` what is to
    be known of the prompt of row i, from the outputs after each of its tokens [P, V]. The results are pairs of a row's
    number and that, and then of the number and a token each time."""

    def __init__(self, begin: Callable[[Run], list[Row]], read: Callable[[int, Tensor], Any], seconds: float) -> None:
        super().__init__(lambda _: iter(()), seconds)
        self.begin, self.read = begin, read
        self.rows: list[Row] = []
        self.writing: set[int] = set()  # numbers of the rows that are not ended

    def end(self, error: BaseException | None = None) -> None:
        self.rows = []
        super().end(error)
