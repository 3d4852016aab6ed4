"""Numbers in words, English to French or French to English."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from unrolled.core.config import Config
from unrolled.core.data_spec import BuiltinSpec, Made
from unrolled.data.files.number_words import LARGEST, SPELLERS


class Settings(Config):
    """How much is made, and which way."""

    examples: int = Field(20_000, ge=1, le=LARGEST)
    """Number of pairs."""
    seed: int = Field(0, ge=0, le=10**18)
    """Random seed."""
    from_: Literal["english", "french"] = Field("english", alias="from")
    """Language of the source."""


def read(settings: Settings) -> Iterator[Made]:
    """The first thousand numbers and others at random, each once; the split holds numbers out."""
    first = settings.from_
    second = next(name for name in SPELLERS if name != first)
    random = np.random.default_rng(settings.seed)
    more = random.choice(np.arange(1000, LARGEST + 1), max(0, settings.examples - 1000), replace=False)
    for number in [*range(min(1000, settings.examples)), *more.tolist()]:
        yield Made(SPELLERS[first](number), SPELLERS[second](number), f"the number {number}")


BUILTIN = BuiltinSpec(
    summary="numbers in words, English to French, for translate; builtin:numbers,from=french is the other way",
    licence="generated",
    size="20,000 pairs",
    holds="pairs",
    use="translate",
    settings=Settings,
    read=read,
)
