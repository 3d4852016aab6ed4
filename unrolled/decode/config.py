"""How to choose the next token, as settings. Imports no torch."""

from __future__ import annotations

from pydantic import Field

from unrolled.core.config import Config


class Sampling(Config):
    """Settings of `choose.make_chooser`."""

    temperature: float = Field(1.0, ge=0)
    """Below 1 bolder, above 1 wilder, 0 always the likeliest token."""
    top_k: int | None = Field(None, ge=1)
    """Sample among the k likeliest tokens only."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Sample among the fewest tokens that together have this probability."""
    repetition_penalty: float = Field(1.0, ge=1)
    """Above 1 makes tokens less likely that have occurred already, the prompt included."""
    seed: int = Field(0, ge=0, lt=2**63)
    """The same seed, prompt and model give the same text."""


GREEDY = Sampling(temperature=0)
