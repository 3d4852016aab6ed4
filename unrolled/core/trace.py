"""Looking inside: layers `note` what they computed, and nothing happens unless somebody is tracing.

>>> with trace() as seen:
...     note("attention", "weights")
>>> seen["attention"]
['weights']
>>> note("attention", "nobody listens")
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Seen = defaultdict[str, list[Any]]

_seen: ContextVar[Seen | None] = ContextVar("unrolled_trace", default=None)


@contextmanager
def trace() -> Iterator[Seen]:
    """Collect every note made inside the block: name -> values in the order in which layers ran."""
    seen: Seen = defaultdict(list)
    token = _seen.set(seen)
    try:
        yield seen
    finally:
        _seen.reset(token)


@contextmanager
def silent() -> Iterator[None]:
    """A block whose notes nobody collects: those of layers that read parts of what is looked at, some at a time."""
    token = _seen.set(None)
    try:
        yield
    finally:
        _seen.reset(token)


def tracing() -> bool:
    """True inside `trace()`: a fast path that does not have the value at hand asks before making it."""
    return _seen.get() is not None


def note(name: str, value: Any) -> None:
    """Offer a value to a running trace."""
    seen = _seen.get()
    if seen is not None:
        seen[name].append(value)
