"""The largest number of a series: x_t uniform in [0, 1); y = max_t x_t."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from unrolled.core.data_spec import BuiltinSpec, Made
from unrolled.data.builtin._series import MOST, Pair, Series, made, rounded


class Settings(Series):
    """How much is made."""

    length: int = Field(50, ge=2, le=MOST)
    """Length of each series."""
    examples: int = Field(5_000, ge=1, le=MOST)
    """Number of series."""


def read(settings: Settings) -> Iterator[Made]:
    def make(random: np.random.Generator) -> Pair:
        x = rounded(random.random(settings.length))[:, None]  # [T, 1]
        return x.astype(np.float32), np.array([x.max()])

    return made(settings, make)


BUILTIN = BuiltinSpec(
    summary="the largest of 50 random numbers, for regress",
    licence="generated",
    size="5,000 series",
    holds="labelled",
    answers="numbers",
    use="regress",
    settings=Settings,
    read=read,
)
