"""Tones: clips of sound whose pitch, loudness and kind are known, for next-sample.

    tone      a sum of four harmonics, 1 / k loud, heard from any moment on
    chirp     a sine whose pitch rises or falls by an octave: f(t) = f0 2^(+-t / T)
    string    a plucked string: a delay line of noise that is averaged at each turn (Karplus & Strong 1983)
    vowel     an impulse train through two resonances (formants), those of a, i or u

The pitch of a clip is one of the twelve notes from A2 (110 Hz) to G#3, or between them with `pitches=any`; loudness
rises over 10 ms, stays, and falls to a tenth. Clip i of a seed is the same every time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from unrolled.core.config import Config
from unrolled.core.data_spec import BuiltinSpec, Made

LOWEST = 110.0  # hertz
NOTES = ("A", "A#", "B", "C", "C#", "D", "D#", "E", "F", "F#", "G", "G#")
FORMANTS = {"a": (730.0, 1090.0), "i": (270.0, 2290.0), "u": (300.0, 870.0)}  # hertz (Peterson & Barney 1952)
WIDTH = 100.0  # hertz of a formant
PEAK = 0.5
RISE = 0.01  # seconds

Floats = NDArray[np.float64]


def tone(pitch: float, n: int, rate: int, random: np.random.Generator) -> Floats:
    t = np.arange(n) / rate + random.random()
    harmonics = [k for k in (1, 2, 3, 4) if k * pitch < rate / 2]
    return np.sum([np.sin(2 * np.pi * k * pitch * t) / k for k in harmonics], axis=0)


def chirp(pitch: float, n: int, rate: int, random: np.random.Generator) -> Floats:
    way = 1 if random.random() < 0.5 else -1
    f = pitch * 2.0 ** (way * np.arange(n) / n)
    return np.sin(2 * np.pi * (np.cumsum(f) / rate + random.random()))


def string(pitch: float, n: int, rate: int, random: np.random.Generator) -> Floats:
    """y_t = 0.999 sum_j w_j y_{t-L-j}, j = 0, 1, 2: a delay of rate / pitch samples, a little duller at each turn."""
    delay = rate / pitch
    L = int(np.floor(delay - 0.5))
    share = delay - L  # between 1/2 and 3/2: a filter of three taps
    y = np.zeros(n + L + 3)
    y[: L + 3] = random.uniform(-1, 1, L + 3)
    taps = np.array([0.25 + (1 - share) / 2, 0.5, 0.25 - (1 - share) / 2])  # of delays L, L + 1, L + 2: mean L + share
    for t in range(L + 3, len(y)):
        y[t] = 0.999 * (taps[0] * y[t - L] + taps[1] * y[t - L - 1] + taps[2] * y[t - L - 2])
    return y[-n:]


def vowel(pitch: float, n: int, rate: int, random: np.random.Generator) -> Floats:
    from scipy.signal import lfilter

    times = np.arange(random.random() * rate / pitch, n - 1, rate / pitch)  # of the impulses, one for each period
    at, share = times.astype(int), times % 1
    y = np.zeros(n)
    y[at], y[at + 1] = 1 - share, share  # between two samples
    for formant in FORMANTS[list(FORMANTS)[random.integers(len(FORMANTS))]]:
        r, angle = np.exp(-np.pi * WIDTH / rate), 2 * np.pi * min(formant, 0.45 * rate) / rate
        y = lfilter([1.0], [1.0, -2 * r * np.cos(angle), r * r], y)
    return np.asarray(y)


KINDS: dict[str, Callable[[float, int, int, np.random.Generator], Floats]] = {
    "tone": tone, "chirp": chirp, "string": string, "vowel": vowel,
}  # fmt: skip


def envelope(n: int, rate: int) -> Floats:
    """Loudness over a clip: up in 10 ms, then down to a tenth at its end."""
    t = np.arange(n) / rate
    return np.minimum(1.0, t / RISE) * 0.1 ** (np.arange(n) / max(n - 1, 1))


class Settings(Config):
    """How many clips, how long, and of which kinds."""

    examples: int = Field(400, ge=20, le=100_000)
    """Number of clips."""
    seconds: float = Field(0.5, gt=0.02, le=60)
    """Seconds of a clip."""
    rate: int = Field(4000, ge=1000, le=48_000)
    """Samples a second."""
    kind: Literal["all", "tone", "chirp", "string", "vowel"] = "all"
    """Which kind of sound."""
    pitches: Literal["notes", "any"] = "notes"
    """Whether pitches are notes, or any between them."""
    seed: int = Field(0, ge=0, le=10**18)
    """Random seed."""


def clip(index: int, settings: Settings) -> Made:
    """Clip `index`."""
    random = np.random.Generator(np.random.PCG64([settings.seed, index]))
    kinds = list(KINDS) if settings.kind == "all" else [settings.kind]
    kind, step = kinds[random.integers(len(kinds))], int(random.integers(len(NOTES)))
    octaves = step / 12 if settings.pitches == "notes" else random.random()
    pitch, n = LOWEST * 2.0**octaves, round(settings.seconds * settings.rate)
    y = KINDS[kind](pitch, n, settings.rate, random)
    y = PEAK * y / np.abs(y).max() * envelope(n, settings.rate)
    note = NOTES[round(12 * octaves) % 12]
    known = {"rate": settings.rate, "kind": kind, "note": note, "pitch": round(pitch, 3)}
    return Made(y.astype(np.float32), known, f"clip {index}")


def read(settings: Settings) -> Iterator[Made]:
    return (clip(index, settings) for index in range(settings.examples))


BUILTIN = BuiltinSpec(
    summary="tones, chirps, plucked strings and vowels of known pitch and loudness, for next-sample",
    licence="generated",
    size="400 clips of half a second",
    holds="sounds",
    use="next-sample",
    settings=Settings,
    read=read,
)
