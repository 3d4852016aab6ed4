"""Several passes over one source must meet the same content, because each pass relies on the ones before.

A split is decided in one pass and carried out in another, and a fingerprint is taken in one and stands for what all
have read. So every pass marks what it meets with a digest, and one that meets something else is an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np

from unrolled.core.errors import DataError

MARK = 8  # bytes that are kept of a mark

T = TypeVar("T", bound=tuple[Any, ...])


def changed(name: str) -> DataError:
    """The sentence for a source that is written to while it is read."""
    return DataError(
        f"{name}: the data changed while it was being read; wait until nothing writes to it, then run the command again"
    )


class Passes:
    """The marks of the content in the order of reading: the first pass sets them, the others must meet them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._marks = bytearray()  # MARK bytes each
        self._length: int | None = None

    def met(self, number: int, mark: bytes) -> None:
        """A pass has come to the mark of that number, counted from 0."""
        place = number * MARK
        if number == self._length or (place < len(self._marks) and self._marks[place : place + MARK] != mark[:MARK]):
            raise changed(self.name)
        if place == len(self._marks):
            self._marks += mark[:MARK]

    def ended(self, length: int) -> None:
        """A pass has come to the end after so many marks."""
        if length * MARK != len(self._marks):
            raise changed(self.name)
        self._length = length


class Steady(Generic[T]):
    """Examples that are read again and again, each of them the same every time."""

    def __init__(self, examples: Iterable[T], name: str) -> None:
        self._examples, self._passes = examples, Passes(name)

    def __iter__(self) -> Iterator[T]:
        number = 0
        for example in self._examples:
            self._passes.met(number, _mark(example))
            number += 1
            yield example
        self._passes.ended(number)


def _mark(example: tuple[Any, ...]) -> bytes:
    """Python's own digest of strings: quick, and compared within this process only."""
    return hash(tuple(map(_plain, example))).to_bytes(MARK, "little", signed=True)


def _plain(value: Any) -> Any:
    """What can be hashed, and is the same for the same content."""
    if isinstance(value, str):
        return value
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, hashlib.blake2b(np.ascontiguousarray(value).data).digest()
    return repr(value)
