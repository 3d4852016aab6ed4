"""Series of known structure: a level, a trend, a daily and a weekly season, and noise; hour by hour, several of them.

x_t = l + b t + a_1 sin(2 pi t / 24 + p_1) + a_2 sin(2 pi t / 168 + p_2) + s e_t,     e_t normal
"""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
from pydantic import Field

from unrolled.core.data_spec import BuiltinSpec
from unrolled.data.builtin._series import MOST, Series, rounded

FIRST = datetime(2024, 1, 1)


class Settings(Series):
    """How much is made, and how noisy."""

    length: int = Field(1000, ge=2, le=MOST)
    """Length of each series."""
    examples: int = Field(5, ge=1, le=MOST)
    """Number of series."""
    noise: float = Field(0.2, ge=0, le=100)
    """Standard deviation s of the noise."""


def read(settings: Settings) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    t = np.arange(settings.length)
    for i in range(settings.examples):
        random = np.random.Generator(np.random.PCG64([settings.seed, i]))
        level, trend, (a, b), (p, q) = (
            10 * random.random(),
            random.normal() / 500,
            0.5 + random.random(2),
            6 * random.random(2),
        )
        clean = level + trend * t + a * np.sin(2 * np.pi * t / 24 + p) + b * np.sin(2 * np.pi * t / 168 + q)
        values = rounded(clean + settings.noise * random.standard_normal(len(t)))
        times = (FIRST + timedelta(hours=int(hour)) for hour in t)
        found += [{"series": f"s{i}", "time": str(time), "value": float(v)} for time, v in zip(times, values)]
    return found


BUILTIN = BuiltinSpec(
    summary="hourly series with a trend, a daily and a weekly season in noise, for forecast",
    licence="generated",
    size="5 series of 1,000 steps",
    holds="series",
    use="forecast",
    settings=Settings,
    read=read,
)
