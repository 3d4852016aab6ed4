"""Random patterns of bits, each -1 or +1 with equal probability: what capacities of memories are stated for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from unrolled.core.config import Config
from unrolled.core.data_spec import BuiltinSpec, Made


class Settings(Config):
    examples: int = Field(20, ge=1, le=1_000_000)
    """Number of patterns."""
    length: int = Field(256, ge=2, le=100_000)
    """Number of bits of a pattern."""
    seed: int = Field(0, ge=0)
    """Seed of the draw."""


def read(settings: Settings) -> Iterator[Made]:
    random = np.random.default_rng([settings.seed, settings.length])
    for i in range(settings.examples):
        yield Made((2.0 * random.integers(0, 2, (1, settings.length)) - 1).astype(np.float32), None, f"pattern {i + 1}")


BUILTIN = BuiltinSpec(
    summary="random patterns of -1 and +1, for recall; builtin:random-patterns,examples=50,length=400",
    licence="generated",
    size="20 patterns",
    holds="labelled",
    use="recall",
    settings=Settings,
    read=read,
)
