"""Sums of sinusoids in noise: clean = sum_k a_k sin(2 pi f_k t + p_k), of unit power; noisy = clean + noise.

One to four sines with periods of 8 to 100 steps; `snr` is the ratio of their powers in dB.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from unrolled.core.data_spec import BuiltinSpec, Made
from unrolled.data.builtin._series import MOST, Pair, Series, made, rounded


class Settings(Series):
    """How much is made, and how noisy."""

    length: int = Field(200, ge=2, le=MOST)
    """Length of each series."""
    examples: int = Field(2_000, ge=1, le=MOST)
    """Number of series."""
    snr: float = Field(0.0, ge=-1000, le=1000)
    """Signal-to-noise ratio in decibels."""


def read(settings: Settings) -> Iterator[Made]:
    def make(random: np.random.Generator) -> Pair:
        t = np.arange(settings.length)
        n = int(random.integers(1, 5))
        a, f, p = 0.5 + random.random(n), 1 / (8 + 92 * random.random(n)), 2 * np.pi * random.random(n)
        clean = (a[:, None] * np.sin(2 * np.pi * (f[:, None] * t) + p[:, None])).sum(axis=0)  # [T]
        clean = clean / np.sqrt((clean**2).mean())
        noise = random.standard_normal(len(t)) * 10 ** (-settings.snr / 20)
        return rounded(clean + noise)[:, None].astype(np.float32), rounded(clean)[:, None].astype(np.float32)

    return made(settings, make)


BUILTIN = BuiltinSpec(
    summary="sums of sinusoids with noise at 0 dB, and the clean series, for denoise",
    licence="generated",
    size="2,000 series",
    holds="labelled",
    answers="series",
    use="denoise",
    settings=Settings,
    read=read,
)
