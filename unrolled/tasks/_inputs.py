"""Inputs of tasks with given targets as users write and read them: one sequence, or a bag of them.

A text is a string, words are a list, numbers a list of numbers or of lists; a bag is a list of such, or that as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.data.bags import as_bag, vector_or_series
from unrolled.data.examples import INPUT, Examples
from unrolled.data.files.cell_values import NO_JSON, as_series, as_words, shown
from unrolled.data.labelled import Bag, Labelled
from unrolled.data.labelled_prepare import InputCodec, unspaced
from unrolled.data.reading import Kind
from unrolled.tasks._live import numbers_in

AT_ONCE, INSTANCES = 256, 100_000  # examples, and of bags instances, that are predicted together
LINES = 20_000  # instances of all bags that are shown as examples


@dataclass(frozen=True)
class Inputs:
    """What a task reads: its codec, of which kind, whether in bags."""

    codec: InputCodec
    kind: Kind
    bags: bool = False
    wide: bool = False
    """whether a list of numbers in a bag is a series of them, not a vector"""

    def taken(self, value: Any, place: str) -> Any:
        """An input as it is; a line of text where words or numbers are wanted, cut into them."""
        if not self.bags:
            return self._instance(value, place)
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except NO_JSON:
                raise DataError(f'{place}: found a text, expected a list of instances, such as ["..", ".."]') from None
        found = as_bag(list(value) if isinstance(value, Bag) else value, place, self._instance)
        if not found:
            raise DataError(f"{place}: the bag is empty; give it an instance")
        return found

    def _instance(self, value: Any, place: str) -> Any:
        if self.kind == "text":
            if not isinstance(value, str):
                raise DataError(f"{place}: found {shown(value)}, expected text")
            if not value.strip():
                raise DataError(f"{place}: the text is empty; fill it in or remove it")
            return value
        if self.kind == "words":
            words = as_words(value, place)
            if not words:
                raise DataError(f"{place}: the text has no words; fill it in or remove it")
            return words
        value = numbers_in(value, place) if isinstance(value, str) else value
        return vector_or_series(value, place, self.wide) if self.bags else as_series(value, place)

    def of_line(self, value: Any) -> Any:
        """An input of the lines of predictions, as `taken` takes it."""
        if self.bags:
            return Bag(np.asarray(each, np.float64) if self.kind == "series" else each for each in value)
        return np.asarray(value, np.float64) if self.kind == "series" else value

    def names(self, section: Examples, i: int) -> list[str]:
        """A name for each position of an input, or for each instance of a bag."""
        if self.bags:
            return [self._called(x, n) for n, x in enumerate(section.fields[INPUT].instances(i))]
        return self._positions(section.at(INPUT, i))

    def _called(self, x: NDArray[Any], number: int) -> str:
        found = self._shown(x) if self.kind != "series" else number
        return " ".join(found) if isinstance(found, list) else str(found)

    def _positions(self, x: NDArray[Any]) -> list[str]:
        if self.kind == "series":
            return [str(t) for t in range(len(x))]
        words = x[:, 0] if x.ndim > 1 else x
        return [self.codec.name(int(token)) for token in words]  # type: ignore[union-attr]

    def shown(self, section: Examples, i: int) -> Any:
        """An encoded input as JSON shows it, and as `taken` takes it again."""
        if self.bags:
            return [self._shown(x) for x in section.fields[INPUT].instances(i)]
        return self._shown(section.at(INPUT, i))

    def _shown(self, x: NDArray[Any]) -> Any:
        if self.kind == "series":
            return np.asarray(self.codec.decode(x)).round(6).tolist()  # type: ignore[union-attr]
        if self.kind == "words":
            return self._positions(x)
        return unspaced(str(self.codec.decode(x)), self.codec.kind)  # type: ignore[union-attr]

    def first(self, section: Examples, limit: int) -> Examples:
        """The first examples, of bags no more than have so many instances, but one."""
        if self.bags:
            fitting = int((section.fields[INPUT].offsets[0][1:] <= LINES).sum())
            limit = min(limit, max(1, fitting))
        return section.first(limit)

    def some_at_a_time(self, found: Iterable[Labelled]) -> Iterator[list[Labelled]]:
        """Examples as many together as are predicted at once."""
        if not self.bags:
            each = iter(found)
            while some := list(islice(each, AT_ONCE)):
                yield some
            return
        waiting: list[Labelled] = []
        for one in found:
            waiting.append(one)
            if len(waiting) == AT_ONCE or sum(len(_sized(each.input)) for each in waiting) >= INSTANCES:
                yield waiting
                waiting = []
        if waiting:
            yield waiting


def _sized(value: Any) -> Sequence[Any]:
    return value if isinstance(value, Sequence) else ()
