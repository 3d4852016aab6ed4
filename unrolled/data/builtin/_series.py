"""What generated series share: their settings, and random numbers that are the same on every machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from unrolled.core.config import Config
from unrolled.core.data_spec import Made

GRID = 2.0**16  # values are rounded to 1 / GRID, so that the last bit of a machine's sine does not matter
MOST = 10**9  # steps of all examples
LARGEST_SEED = 10**18

Pair = tuple[NDArray[np.float32], Any]


class Series(Config):
    """How much is made."""

    length: int = Field(100, ge=2, le=MOST)
    """Length of each series."""
    examples: int = Field(10_000, ge=1, le=MOST)
    """Number of series."""
    seed: int = Field(0, ge=0, le=LARGEST_SEED)
    """Random seed."""

    @model_validator(mode="after")
    def within_bounds(self) -> Self:
        if self.length * self.examples > MOST:
            raise ValueError(f"examples times length must be at most {MOST:,}")
        return self


def rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.round(values * GRID) / GRID


def made(settings: Series, make: Callable[[np.random.Generator], Pair]) -> Iterator[Made]:
    """Example i is a function of (seed, i) alone."""
    for i in range(settings.examples):
        yield Made(*make(np.random.Generator(np.random.PCG64([settings.seed, i]))), f"example {i}")
