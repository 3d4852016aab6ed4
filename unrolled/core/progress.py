"""How far long work is, for those who ask to see it: nobody, unless a block says so. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Report = Callable[[int, int], None]
"""report(done, of): how much of how much is done."""

_reports: ContextVar[Report | None] = ContextVar("reports", default=None)


@contextmanager
def reported(report: Report) -> Iterator[None]:
    """A block in which work says how far it is.

    >>> with reported(lambda done, of: print(done, "of", of)):
    ...     advanced(1, 2)
    1 of 2
    """
    token = _reports.set(report)
    try:
        yield
    finally:
        _reports.reset(token)


def advanced(done: int, of: int) -> None:
    """Say how far work is, if somebody wants to know."""
    report = _reports.get()
    if report is not None:
        report(done, of)
