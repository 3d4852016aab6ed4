"""What looking inside takes and gives: a question in a file, numbers, pictures, and a sentence of reading help.

A file in `unrolled/inspect/`, or one of a user, is one question: it declares `QUESTION = QuestionSpec(...)`, which is
checked once, when it is made. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from unrolled.core.config import Config
from unrolled.core.spec import WrongField, miscalled, misconfigured, misnamed

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Answer:
    """What a question found out."""

    reading: str
    """How to read it, and what it says here, in a sentence or two."""
    numbers: dict[str, Any] = field(default_factory=dict)
    """JSON values."""
    arrays: dict[str, Tensor] = field(default_factory=dict)
    """The large numbers, saved as one .npz file."""
    pictures: list[Any] = field(default_factory=list)
    """Values of unrolled.pictures.kinds, the most telling first."""

    def __post_init__(self) -> None:
        for why in _unusable(self):
            raise TypeError(why)


def _unusable(answer: Answer) -> Iterator[str]:
    """What cannot be shown or saved."""
    if not isinstance(answer.reading, str):
        yield f"the reading of an Answer must be a text, found {type(answer.reading).__name__}"
    if odd := _no_json(answer.numbers, "numbers"):
        yield f"{odd}: expected texts, numbers, True, False, None, and lists and dictionaries of them"
    for name, each in answer.arrays.items():
        if not isinstance(each, _tensor()):
            yield f"arrays[{name!r}] of an Answer must be a tensor, found {type(each).__name__}"
    for each in answer.pictures:
        if not isinstance(each, BaseModel):
            yield f"a picture of an Answer must be one of unrolled.pictures.kinds, found {type(each).__name__}"


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


def _always(run: Any) -> None:
    """A question that has an answer for every run."""


@dataclass(frozen=True, kw_only=True)
class QuestionSpec:
    """A file that asks a question, in values."""

    summary: str
    """What it asks, in a sentence, for lists."""
    config: type[Config]
    """Its settings, each with a default."""
    ask: Callable[[Any, Any, Any], Answer]
    """ask(run, value, config) -> Answer; `value` is an input as the task reads it."""
    applies: Callable[[Any], str | None] = _always
    """applies(run): why the question has no answer for this run; None: it has one."""
    aliases: tuple[str, ...] = ()
    """Other names, for whoever types one of them."""

    def __post_init__(self) -> None:
        for name, why in _faults(self):
            raise WrongField(QuestionSpec, name, why)


ARGUMENTS: Mapping[str, tuple[str, ...]] = {"ask": ("run", "value", "config"), "applies": ("run",)}


def _faults(spec: QuestionSpec) -> Iterator[tuple[str, str]]:
    """Fields with a wrong value, and what is wrong."""
    if not isinstance(spec.summary, str):
        yield "summary", f"invalid value summary = {spec.summary!r}: expected a text"
    yield from misnamed(spec.aliases)
    yield from misconfigured(spec.config)
    for name, arguments in ARGUMENTS.items():
        if why := miscalled(getattr(spec, name), name, arguments):
            yield name, why
