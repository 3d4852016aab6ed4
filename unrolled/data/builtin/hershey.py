"""Words written with the single-stroke vector fonts of A. V. Hershey (1967), as a pen would write them.

A word is the strokes of its letters in a font, slanted, turned, stretched and jittered at random: every drawing has a
hand of its own. Long lines are cut into short ones, so that points are about evenly spaced. Words are drawn from
pronounceable ones, so that held-out words are others than those of training.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from unrolled.core.config import Config
from unrolled.core.data_spec import BuiltinSpec, Made
from unrolled.data.builtin._hershey_letters import CURSIVE, PLAIN

FONTS = {"plain": PLAIN, "cursive": CURSIVE}
ORIGIN = ord("R")
ONSETS = ("", "b", "c", "d", "f", "g", "h", "j", "k", "l", "m", "n", "p", "qu", "r", "s", "t", "v", "w", "x", "y", "z")
VOWELS = ("a", "e", "i", "o", "u")
CODAS = ("", "", "", "n", "r", "s", "t", "l", "m", "d")
STEP = 3.0  # longest line, in units of the font, whose capitals are 21 high

HELD_OUT = {8: "valid", 9: "test"}  # of every 20 different words

Strokes = list[NDArray[np.float64]]


class Settings(Config):
    examples: int = Field(2000, ge=20, le=200_000)
    """Number of words."""
    font: Literal["plain", "cursive"] = "plain"
    """The vector font."""
    letters: int = Field(6, ge=2, le=40)
    """Maximum number of letters of a word."""
    jitter: float = Field(0.3, ge=0, le=3)
    """How far points are moved at random, in units of the font, whose capitals are 21 high."""
    seed: int = Field(0, ge=0, le=10**18)
    """Random seed."""


def letter_of(glyph: str) -> tuple[Strokes, float]:
    """The strokes of a letter from its left edge on, and its width.

    >>> strokes, width = letter_of("MYWFU[ RRF")
    >>> [stroke.tolist() for stroke in strokes], width
    ([[[10.0, -12.0], [8.0, 9.0]], [[5.0, -12.0]]], 12.0)
    """
    left, right = (ord(edge) - ORIGIN for edge in glyph[:2])
    strokes = [np.array([ord(each) - ORIGIN for each in stroke], np.float64) for stroke in glyph[2:].split(" R")]
    return [stroke.reshape(-1, 2) - np.array([left, 0.0]) for stroke in strokes], float(right - left)


def written(text: str, font: str) -> Strokes:
    """The strokes of a text, without any hand; y grows downwards."""
    found, x = [], 0.0
    for letter in text:
        strokes, width = letter_of(FONTS[font][letter])
        found += [stroke + np.array([x, 0.0]) for stroke in strokes]
        x += width
    return found


def dense(stroke: NDArray[np.float64]) -> NDArray[np.float64]:
    """With points between those that are further apart than STEP.

    >>> dense(np.array([[0.0, 0.0], [6.0, 0.0]])).tolist()
    [[0.0, 0.0], [3.0, 0.0], [6.0, 0.0]]
    """
    points = [stroke[:1]]
    for a, b in itertools.pairwise(stroke):
        n = max(1, int(np.ceil(np.hypot(*(b - a)) / STEP)))
        points.append(a + (b - a) * (np.arange(1, n + 1) / n)[:, None])
    return np.concatenate(points)


def by_hand(strokes: Strokes, jitter: float, random: np.random.Generator) -> list[list[list[float]]]:
    """Strokes slanted, turned, stretched and jittered."""
    slant, turn = random.normal(0.15, 0.15), random.normal(0, 0.03)
    width, height = np.exp(random.normal(0, 0.1, 2))
    shear = np.array([[width, -slant], [0, height]])  # y grows downwards: what is above leans to the right
    c, s = np.cos(turn), np.sin(turn)
    hand = np.array([[c, -s], [s, c]]) @ shear
    drawn = [dense(stroke) @ hand.T for stroke in strokes]
    return [(stroke + random.normal(0, jitter, stroke.shape)).round(2).tolist() for stroke in drawn]


def word(most: int, random: np.random.Generator) -> str:
    """A pronounceable word."""
    length, found = int(random.integers(min(2, most), most + 1)), ""
    while len(found) < length:
        found += "".join(str(random.choice(each)) for each in (ONSETS, VOWELS, CODAS))
    return found[:length]


def read(settings: Settings) -> Iterator[Made]:
    random = np.random.default_rng(settings.seed)
    parts: dict[str, str] = {}
    for i in range(settings.examples):
        text = word(settings.letters, random)
        part = parts.setdefault(text, HELD_OUT.get(len(parts) % 20, "train"))  # equal words are in one split
        yield Made(by_hand(written(text, settings.font), settings.jitter, random), text, f"word {i}", part)


BUILTIN = BuiltinSpec(
    summary="words in a single-stroke vector font, slanted and jittered, with their text, for handwriting",
    licence="Hershey fonts, for any purpose where A. V. Hershey and J. Hurt are named",
    size="2,000 words",
    holds="drawings",
    use="handwriting",
    settings=Settings,
    read=read,
)
