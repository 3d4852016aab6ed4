"""Work that someone else may end: a client that has gone, a limit of time.

Loops that may take long ask once per tick or batch whether they are still wanted. Nothing is stopped in between, so
what they hold is never left half done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Stopped(Exception):
    """The work is no longer wanted."""


_unwanted: ContextVar[Callable[[], bool] | None] = ContextVar("unwanted", default=None)


@contextmanager
def stopped_by(unwanted: Callable[[], bool]) -> Iterator[None]:
    """A block whose loops end with `Stopped` as soon as `unwanted()` is True.

    >>> with stopped_by(lambda: True):
    ...     require_wanted()
    Traceback (most recent call last):
        ...
    unrolled.core.stopping.Stopped
    """
    token = _unwanted.set(unwanted)
    try:
        yield
    finally:
        _unwanted.reset(token)


def require_wanted() -> None:
    """End the work if it is no longer wanted."""
    unwanted = _unwanted.get()
    if unwanted is not None and unwanted():
        raise Stopped
