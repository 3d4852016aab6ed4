"""What looking inside takes: a question in a file.

A file in `unrolled/inspect/`, or one of a user, is one question: it declares `QUESTION = QuestionSpec(...)`, which is
checked once, when it is made. What it gives is an `unrolled.pictures.answer.Answer`. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from unrolled.core.config import Config
from unrolled.core.declared import require_sound


def _always(run: Any) -> None:
    """A question that has an answer for every run."""


@dataclass(frozen=True, kw_only=True)
class QuestionSpec:
    """A file that asks a question, in values."""

    summary: str
    """The question in one sentence, for lists."""
    config: type[Config]
    """Its settings, each with a default."""
    ask: Callable[[Any, Any, Any], Any]
    """ask(run, value, config) -> Answer; `value` is an input as the task reads it."""
    applies: Callable[[Any], str | None] = _always
    """applies(run): why the question does not apply to this run; None: it does."""
    aliases: tuple[str, ...] = ()
    """Other names that users may type."""
    bags: bool = False
    """Whether it can be asked of a run that reads bags; most look at the positions of one sequence."""

    def __post_init__(self) -> None:
        require_sound(self, "config", ARGUMENTS)


ARGUMENTS: Mapping[str, tuple[str, ...]] = {"ask": ("run", "value", "config"), "applies": ("run",)}
