"""What a file of a data set declares. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from unrolled.core.config import Config


class Made(NamedTuple):
    """An example of a data set that is not text: what is read, what is to be predicted, and where in the set it is."""

    input: Any
    target: Any
    place: str
    part: str = "all"
    """train, valid or test where the set says so"""
    kind: str = ""
    """what sort of held-out example it is, where figures tell such apart"""


@dataclass(frozen=True, kw_only=True)
class BuiltinSpec:
    """A built-in data set, `builtin:NAME,setting=value`."""

    summary: str
    """what it is, and what for"""
    licence: str
    size: str
    """about how large it is, in words"""
    holds: Literal["text", "rows", "labelled", "pairs", "pictures"]
    """what `read` gives: one text or the paths of texts; rows with named values; otherwise an iterator of `Made`, of
    series [T, D] with their targets, texts with their translations, or pictures [H, W, 3] with their captions"""
    use: str
    """the tasks that it is for, as the end of a sentence: use it with .."""
    read: Callable[[Any], Any]
    """from the settings to the data, the same every time"""
    settings: type[Config] = Config
    """what may follow the name; `examples` and `length` say how much is made"""
    columns: Mapping[str, str] = field(default_factory=dict)
    """of rows: the names of the column of text and, as `target`, of the class"""
    answers: Literal["class", "numbers", "series"] | None = None
    """of series: what their targets are"""
