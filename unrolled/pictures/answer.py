"""An answer: what looking inside a run found, as a sentence, numbers, arrays and pictures. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unrolled.pictures.kinds import Base, Picture, Table
from unrolled.pictures.letters import plain_number, title_words
from unrolled.pictures.notebook import fragment

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, repr=False)
class Answer:
    """What a question found out. In a notebook it shows itself: its reading, its numbers and its pictures."""

    reading: str
    """How to read it, and what it shows here, in a sentence or two."""
    numbers: dict[str, Any] = field(default_factory=dict)
    """JSON values."""
    arrays: dict[str, Tensor] = field(default_factory=dict)
    """The large numbers, saved as one .npz file."""
    pictures: list[Picture] = field(default_factory=list)
    """The most informative first."""

    def __post_init__(self) -> None:
        for why in _unusable(self):
            raise TypeError(why)

    def __repr__(self) -> str:
        arrays = [f"{name} {list(each.shape)}" for name, each in self.arrays.items()]
        found = {"numbers": [*self.numbers], "arrays": arrays, "pictures": [each.title for each in self.pictures]}
        named = [f"  {what}: {', '.join(map(str, names))}" for what, names in found.items() if names]
        return "\n".join([f"Answer: {self.reading}", *named])

    def _repr_html_(self) -> str:
        numbers = [f"{title_words(key)}: {plain}" for key, each in self.numbers.items() if (plain := plain_value(each))]
        return fragment([self.reading, "; ".join(numbers)], [*self.tables(), *self.pictures])

    def tables(self) -> list[Table]:
        """Rows of numbers under one name, such as those of every head, unless a picture is their table already."""
        if any(isinstance(each, Table) for each in self.pictures):
            return []
        rows = {key: each for key, each in self.numbers.items() if each and isinstance(each, list)}
        made = [_table(key, each) for key, each in rows.items() if all(isinstance(row, dict) for row in each)]
        return [each for each in made if each.columns]


def plain_value(value: Any) -> str | None:
    """A number or a word on a line; None for what is longer."""
    if isinstance(value, bool | str):
        return str(value)
    return plain_number(value) if isinstance(value, int | float) else None


def _table(key: str, rows: list[dict[str, Any]]) -> Table:
    """The columns in which every row has a number or a word, or nothing."""
    names = dict.fromkeys(name for row in rows for name in row)
    plain = [name for name in names if all(row.get(name) is None or plain_value(row[name]) for row in rows)]
    columns = [title_words(name) for name in plain]
    return Table(title=title_words(key), columns=columns, rows=[[row.get(name) for name in plain] for row in rows])


def _unusable(answer: Answer) -> Iterator[str]:
    """What cannot be shown or saved."""
    if not isinstance(answer.reading, str):
        yield f"the reading of an Answer must be a string, found {type(answer.reading).__name__}"
    if odd := _no_json(answer.numbers, "numbers"):
        yield f"{odd}: expected strings, numbers, True, False, None, or lists and dictionaries of them"
    for name, each in answer.arrays.items():
        if not isinstance(each, _tensor()):
            yield f"arrays[{name!r}] of an Answer must be a tensor, found {type(each).__name__}"
    for picture in answer.pictures:
        if not isinstance(picture, Base):
            yield f"a picture of an Answer must be one of unrolled.pictures.kinds, found {type(picture).__name__}"


def _tensor() -> type[Tensor]:
    from torch import Tensor

    return Tensor


def _no_json(value: Any, place: str) -> str | None:
    """The place and type of what JSON cannot hold; None: nothing."""
    if isinstance(value, dict):
        odd = next((key for key in value if not isinstance(key, str)), None)
        if odd is not None:
            return f"{place} of an Answer has the key {odd!r}"
        return next((odd for key, each in value.items() if (odd := _no_json(each, f"{place}[{key!r}]"))), None)
    if isinstance(value, list | tuple):
        return next((odd for i, each in enumerate(value) if (odd := _no_json(each, f"{place}[{i}]"))), None)
    if value is None or isinstance(value, str | int | float):
        return None
    return f"{place} of an Answer is of type {type(value).__name__}"
