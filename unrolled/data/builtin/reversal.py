"""Random letters and the same from the last to the first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from unrolled.core.config import Config
from unrolled.core.data_spec import BuiltinSpec, Made

LETTERS = "abcdefghijklmnopqrstuvwxyz"
LONGEST = 10_000  # letters of a word
MOST = 999_999  # words


class Settings(Config):
    """How much is made."""

    examples: int = Field(20_000, ge=1, le=MOST)
    """Number of pairs."""
    length: int = Field(20, ge=1, le=LONGEST)
    """Maximum length of a word."""
    seed: int = Field(0, ge=0, le=10**18)
    """Random seed."""

    @model_validator(mode="after")
    def enough_words(self) -> Self:
        there = sum(len(LETTERS) ** n for n in range(1, min(self.length, 5) + 1))  # more than MOST from 5 on
        if self.examples > there:
            raise ValueError(f"there are only {there:,} words of up to {self.length} letters; use fewer examples")
        return self


def read(settings: Settings) -> Iterator[Made]:
    """Different words of 1 to `length` letters, all lengths alike."""
    random = np.random.default_rng(settings.seed)
    seen: set[str] = set()
    for _ in range(100 * settings.examples):
        length = int(random.integers(1, settings.length + 1))
        word = "".join(LETTERS[i] for i in random.integers(len(LETTERS), size=length))
        if word not in seen:
            seen.add(word)
            yield Made(word, word[::-1], f"pair {len(seen)}")
        if len(seen) == settings.examples:
            return


BUILTIN = BuiltinSpec(
    summary="letters and the same letters reversed, for translate; builtin:reversal,length=40",
    licence="generated",
    size="20,000 pairs",
    holds="pairs",
    use="translate",
    settings=Settings,
    read=read,
)
