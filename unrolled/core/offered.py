"""An input to begin with, for people who type, draw or pick one: its form, and its value as verbs take it in JSON."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

Form = Literal["text", "words", "numbers", "pattern", "image", "sound", "pen", "frames"]
"""How people give an input: typed, as numbers, painted, or picked from a file."""


class Offered(NamedTuple):
    """An input to begin with, as verbs take it in JSON."""

    form: Form
    value: Any
    rate: int | None = None  # of sound: samples a second


def offered(value: Any) -> Offered:
    """What can be told of an input by itself: a text, words, or numbers.

    >>> offered("a text").form, offered(["two", "words"]).form, offered([[0.5], [1.0]]).form
    ('text', 'words', 'numbers')
    """
    if isinstance(value, str):
        return Offered("text", value)
    values = list(value)
    return Offered("words" if values and isinstance(values[0], str) else "numbers", values)
