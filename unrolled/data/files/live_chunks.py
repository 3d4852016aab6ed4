"""Live chunks: as many examples at a time as are there, up to a number; so what comes slowly is answered at once."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextvars import copy_context
from itertools import islice
from queue import Empty, Queue
from typing import Any, TypeVar

Item = TypeVar("Item")

PAUSE = 0.05  # seconds without another item that end a chunk
END = object()


def live_chunks(items: Iterable[Item], most: int, live: bool = True) -> Iterator[list[Item]]:
    """The items in lists of at most `most`, in order. Live, a list ends too when no further item comes for a moment.

    >>> list(live_chunks(range(5), 2, live=False))
    [[0, 1], [2, 3], [4]]
    """
    if not live:
        source = iter(items)
        while some := list(islice(source, most)):
            yield some
        return
    queue: Queue[Any] = Queue(maxsize=2 * most)
    here = copy_context()  # how files are read holds in the thread, too
    threading.Thread(target=here.run, args=(_fill, queue, items), daemon=True).start()
    while True:
        held = [queue.get()]
        while len(held) < most and not _ends(held[-1]):
            try:
                held.append(queue.get(timeout=PAUSE))
            except Empty:
                break
        last = held.pop() if _ends(held[-1]) else None
        if held:
            yield held
        if isinstance(last, BaseException):
            raise last
        if last is END:
            return


def _ends(item: Any) -> bool:
    return item is END or isinstance(item, BaseException)


def _fill(queue: Queue[Any], items: Iterable[Any]) -> None:
    try:
        for item in items:
            queue.put(item)
        queue.put(END)
    except BaseException as error:  # told where the items are used
        queue.put(error)
