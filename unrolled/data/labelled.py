"""Labelled examples: an input, its answer and its place, from whatever a user has.

| input | what it is |     | answer | what it is |
|---|---|---|---|---|
| text | a string | | class, classes | a name; a tuple of names, perhaps empty |
| words | a list of words | | numbers | an array [n] |
| series | an array [T, D] | | tags; series | a list, one tag a word; an array [T, D'] |

A bag is an input that holds several of these, its instances, in a `Bag`.
A source is read as often as needed, always in the same order, and every example is checked on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError, listed
from unrolled.core.front import option
from unrolled.data.files.cell_values import LARGEST
from unrolled.data.given_splits import ALL, settled
from unrolled.data.reading import Answers, Kind, Reading


class Bag(tuple[Any, ...]):
    """The instances of a bag, each an input."""


class Labelled(NamedTuple):
    """One example; `part` is train, valid or test where the source says so, and otherwise all."""

    input: Any
    answer: Any
    place: str
    group: str | None = None
    part: str = ALL
    id: str | None = None
    """of a series in a long table"""
    series: str | None = None
    """of a window: the place of the series that it was cut from"""
    bag: str | None = None
    """of an instance: the bag that it is in"""


@dataclass
class LabelledSource:
    """Examples that can be read again and again: `for example in source`."""

    name: str
    kind: Kind
    answers: Answers
    read: Callable[[], Iterator[Labelled]]
    notes: dict[str, None] = field(default_factory=dict)
    """what was chosen, changed or left out while reading; complete after one pass"""
    reading: Reading = field(default_factory=Reading)
    """the settings with the columns that were chosen: a saved run reads other files with these"""
    typed: bool = False
    """whether texts and numbers are distinguished, as in JSON or a data frame; in a .csv file and in names all is
    text"""
    bags: bool = False
    """whether every input is a Bag, whose instances are of `kind`"""

    def __iter__(self) -> Iterator[Labelled]:
        first: Labelled | None = None
        for example in self.read():
            check(example, self.kind, self.answers, first or example)
            first = first or example
            yield example
        if first is None:
            raise DataError(f"{self.name}: there are no examples in it, so there is nothing to learn from")


def instances_of(value: Any) -> tuple[Any, ...]:
    """The instances of a bag; any other input is one by itself."""
    return value if isinstance(value, Bag) else (value,)


def check(example: Labelled, kind: Kind, answers: Answers, first: Labelled) -> None:
    """One example by itself and beside the first."""
    place = example.place
    if isinstance(example.input, Bag):
        if not example.input:
            raise DataError(f"{place}: the bag is empty; give it an instance or remove it")
        for number, each in enumerate(example.input, start=1):
            _check_input(each, f"{place}, instance {number}", kind, first)
    else:
        _check_input(example.input, place, kind, first)
    if answers == "class" and not example.answer.strip():
        raise DataError(f"{place}: the class is empty; fill it in or remove the example")
    if answers == "numbers" and example.answer.shape != first.answer.shape:
        raise DataError(f"{place}: found {len(example.answer)} targets, expected {len(first.answer)}")
    if answers == "tags" and len(example.answer) != len(example.input):
        raise DataError(
            f"{place}: found {len(example.answer)} tags for {len(example.input)} words; each word needs one"
        )
    if answers == "series":
        check_series(example.answer, place)
        if len(example.answer) != len(example.input) or example.answer.shape[1] != first.answer.shape[1]:
            raise DataError(
                f"{place}: the target has shape {list(example.answer.shape)} and the input "
                f"{list(example.input.shape)}; both need the same number of steps"
            )


def _check_input(value: Any, place: str, kind: Kind, first: Labelled) -> None:
    if kind == "text" and not value.strip():
        raise DataError(f"{place}: the text is empty; fill it in or remove it")
    if kind == "words" and (not value or not all(value)):
        raise DataError(f"{place}: the text has no words; fill it in or remove it")
    if kind == "series":
        check_series(value, place)
        before = instances_of(first.input)[0].shape[1]
        if value.shape[1] != before:
            raise DataError(
                f"{place}: the series has {value.shape[1]} channels, but the first ({first.place}) has {before}; all "
                "series need the same number"
            )


def check_series(values: NDArray[Any], place: str) -> None:
    """Numbers [T, D] without NaN or infinity, in single precision too."""
    if values.ndim != 2 or 0 in values.shape:
        raise DataError(f"{place}: found shape {list(values.shape)}, expected numbers [time, channels]; remove it")
    finite = np.abs(values) <= LARGEST  # False of NaN too
    if not finite.all():
        step, channel = np.argwhere(~finite)[0]
        raise DataError(
            f"{place}, step {step + 1}, channel {channel + 1}: found {values[step, channel]}, expected a "
            f"number; fill it in, or set {option('missing')} to zero, previous or line"
        )


def join_parts(parts: Mapping[str, LabelledSource], name: str) -> LabelledSource:
    """Sources that are a part each, as one."""
    kinds = {source.kind for source in parts.values()}
    if len(kinds) > 1:
        raise DataError(
            f"{name}: the splits hold different kinds of data, {listed(sorted(kinds))}; they must be the same"
        )
    first = next(iter(parts.values()))
    result = replace(first, name=name, read=lambda: read(), notes={})

    def read() -> Iterator[Labelled]:
        for part, source in parts.items():
            for example in source:
                yield example._replace(part=settled(example.part, part, parts, example.place))
            result.notes.update(source.notes)

    return result
