"""Reads a word of `builtin:hershey` from its strokes alone, by the nearest templates of letters.

    cost(strokes) = min over cuts into groups, and a letter for each group, of
        sum over groups of n |group - template|^2 + n |origin - (origin before + width of the letter before)|^2

A template is the strokes of a letter of the font, each as POINTS places at even distances, with one of some slants; a
group is n successive strokes, as many as the letter has, about their mean, and its origin is where the letter's left
edge would be. The best cuts are found by dynamic programming. The reader does not know the word, and nothing of it was
fitted to any drawing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.data.builtin.hershey import FONTS, dense, letter_of

POINTS = 12  # places that a stroke becomes
SLANTS = (-0.2, 0.0, 0.15, 0.3, 0.5)

Places = NDArray[np.float64]


class Templates(NamedTuple):
    """The letters of a font that have as many strokes each, once for every slant."""

    letters: list[str]
    places: NDArray[np.float64]  # [L, n POINTS, 2] about their means
    means: Places  # [L, 2] from the left edge on
    widths: Places  # [L, 2], of which the second is 0


class Read(NamedTuple):
    """A way to read the first strokes: its cost, its letters, and where the next letter would begin."""

    cost: float
    word: str
    next: Places


def evenly(stroke: Places) -> Places:
    """A stroke as POINTS places at even distances along it; a dot stays where it is."""
    ways = np.hypot(*np.diff(stroke, axis=0).T) if len(stroke) > 1 else np.zeros(0)
    along = np.concatenate([[0.0], np.cumsum(ways)])
    at = np.linspace(0, along[-1], POINTS)
    return np.column_stack([np.interp(at, along, stroke[:, axis]) for axis in (0, 1)])


def templates(font: str) -> dict[int, Templates]:
    """The letters by their number of strokes."""
    found: dict[int, list[tuple[str, Places, float]]] = {}
    for letter, glyph in FONTS[font].items():
        strokes, width = letter_of(glyph)
        for slant in SLANTS:
            leaning = np.array([[1.0, 0.0], [-slant, 1.0]])
            places = np.concatenate([evenly(dense(stroke) @ leaning) for stroke in strokes])
            found.setdefault(len(strokes), []).append((letter, places, width))
    return {n: _stacked(some) for n, some in found.items()}


def _stacked(some: list[tuple[str, Places, float]]) -> Templates:
    letters, places, widths = zip(*some)
    means = np.stack(places).mean(axis=1)
    return Templates(list(letters), np.stack(places) - means[:, None], means, np.outer(widths, [1.0, 0.0]))


def read_word(strokes: list[Places], known: dict[int, Templates]) -> str:
    """The letters of the cheapest cuts."""
    even = [evenly(stroke) for stroke in strokes]
    ways: list[list[Read]] = [[]]  # to read the first strokes: the cheapest one for every last letter
    for end in range(1, len(even) + 1):
        best: dict[str, Read] = {}
        for n, some in known.items():
            if n <= end and (n == end or ways[end - n]):
                for read in _last(np.concatenate(even[end - n : end]), some, n, ways[end - n]):
                    last = read.word[-1]
                    best[last] = min(read, best.get(last, read), key=lambda each: each.cost)
        ways.append(list(best.values()))
    return min(ways[-1], key=lambda each: each.cost).word if ways[-1] else ""


def _last(group: Places, some: Templates, n: int, before: list[Read]) -> list[Read]:
    """The ways to read a group after those before it; none: it begins the word."""
    mean = group.mean(axis=0)
    costs = n * ((some.places - (group - mean)) ** 2).mean(axis=1).sum(axis=1)  # [L]
    origins = mean - some.means  # [L, 2]
    nexts = origins + some.widths
    if not before:
        return [Read(float(c), letter, to) for c, letter, to in zip(costs, some.letters, nexts)]
    off = n * ((origins[:, None] - np.stack([each.next for each in before])) ** 2).sum(axis=-1)  # [L, before]
    total = costs[:, None] + off + np.array([each.cost for each in before])
    chosen = total.argmin(axis=1)  # [L]
    return [
        Read(float(total[i, j]), before[j].word + letter, nexts[i])
        for i, (letter, j) in enumerate(zip(some.letters, chosen))
    ]
