"""What looking inside gives: numbers, pictures, and a sentence of reading help.

A file in `unrolled/inspect/` is one question. It defines

    Config                          its settings
    applies(run) -> str | None      why the question has no answer for this run; None: it has one
    ask(run, value, config)         -> Answer; `value` is an input as the task reads it, None: an example of the run
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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
