"""Labelled data that needs no file: handwritten digits, and problems generated from a seed, the same on every machine.

    builtin:digits                       scikit-learn's 8 x 8 digits, rows from top to bottom; a class
    builtin:adding,length=600            x_t = (u_t, m_t), u uniform in [0, 1), two marks; y = the sum of the marked u
                                         (Hochreiter & Schmidhuber 1997; as in Bai et al. 2018)
    builtin:maximum                      x_t uniform in [0, 1); y = max_t x_t
    builtin:sinusoids                    clean = sum_k a_k sin(2 pi f_k t + p_k), of unit power; noisy = clean + noise

Settings follow the name with commas: length, examples, seed; for sinusoids also snr in dB (0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError, Misused, UsageError, nearest
from unrolled.data.labelled import BUILTIN, Labelled, LabelledSource
from unrolled.data.reading import Answers

Pair = tuple[NDArray[np.float32], Any]
GRID = 2.0**16  # values are rounded to 1 / GRID, so that the last bit of a machine's sine does not matter


@dataclass(frozen=True)
class Problem:
    """A generated set: what its answers are, its usual settings, and one example from a generator of random numbers."""

    answers: Answers
    settings: dict[str, float]
    make: Callable[[np.random.Generator, dict[str, float]], Pair]


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.round(values * GRID) / GRID


def adding(random: np.random.Generator, settings: dict[str, float]) -> Pair:
    """One mark in each half of the sequence."""
    length = int(settings["length"])
    x = np.zeros((length, 2))  # [T, 2]
    x[:, 0] = _rounded(random.random(length))
    marks = [int(random.integers(length // 2)), int(random.integers(length // 2, length))]
    x[marks, 1] = 1
    return x.astype(np.float32), np.array([x[marks, 0].sum()])


def maximum(random: np.random.Generator, settings: dict[str, float]) -> Pair:
    x = _rounded(random.random(int(settings["length"])))[:, None]  # [T, 1]
    return x.astype(np.float32), np.array([x.max()])


def sinusoids(random: np.random.Generator, settings: dict[str, float]) -> Pair:
    """One to four sines with periods of 8 to 100 steps."""
    t = np.arange(int(settings["length"]))
    n = int(random.integers(1, 5))
    a, f, p = 0.5 + random.random(n), 1 / (8 + 92 * random.random(n)), 2 * np.pi * random.random(n)
    clean = (a[:, None] * np.sin(2 * np.pi * (f[:, None] * t) + p[:, None])).sum(axis=0)  # [T]
    clean = clean / np.sqrt((clean**2).mean())
    noise = random.standard_normal(len(t)) * 10 ** (-settings["snr"] / 20)
    return _rounded(clean + noise)[:, None].astype(np.float32), _rounded(clean)[:, None].astype(np.float32)


PROBLEMS = {
    "adding": Problem("numbers", {"length": 100, "examples": 10_000, "seed": 0}, adding),
    "maximum": Problem("numbers", {"length": 50, "examples": 5_000, "seed": 0}, maximum),
    "sinusoids": Problem("series", {"length": 200, "examples": 2_000, "seed": 0, "snr": 0.0}, sinusoids),
}
NAMES = ("digits", *PROBLEMS)


def open_builtin(source: str, answers: Answers) -> LabelledSource:
    """`builtin:NAME` or `builtin:NAME,setting=value,...`."""
    name, *words = source.removeprefix(BUILTIN).split(",")
    if name == "digits":
        if words:
            raise Misused(f"{source}: digits have no settings")
        return _open_digits(answers)
    if name == "unicode-names":
        from unrolled.data import builtin
        from unrolled.data.labelled_table import open_columns
        from unrolled.data.reading import Reading
        from unrolled.data.tables import ListTable

        rows: Any = builtin.load(name)
        return open_columns(ListTable(rows, source), Reading(column="text", target="script"), answers)
    if name not in PROBLEMS:
        raise Misused(f"there is no built-in labelled data '{name}'; {nearest(name, [*NAMES, 'unicode-names'])}")
    problem = PROBLEMS[name]
    _fits(source, answers, problem.answers)
    settings = _settings(source, words, problem.settings)

    def read() -> Iterator[Labelled]:
        for i in range(int(settings["examples"])):
            random = np.random.Generator(np.random.PCG64([int(settings["seed"]), i]))
            x, y = problem.make(random, settings)
            yield Labelled(x, None if answers == "none" else y, f"{source}, example {i}")

    return LabelledSource(source, "series", answers, read)


MOST = 10**9  # steps of all examples


def _fits(source: str, wanted: Answers, given: Answers) -> None:
    if wanted not in (given, "none"):
        raise UsageError(f"{source}: the answers are {given}, not {wanted}")


def _settings(source: str, words: list[str], usual: dict[str, float]) -> dict[str, float]:
    settings = dict(usual)
    for word in words:
        key, _, value = word.partition("=")
        if key not in usual:
            raise Misused(f"{source}: there is no setting '{key}'; {nearest(key, usual)}")
        try:
            settings[key] = float(value) if key == "snr" else int(value)
        except ValueError:
            raise Misused(f"{source}: {key} = '{value}' is not a number") from None
    if settings["length"] < 2 or settings["examples"] < 1 or settings["seed"] < 0:
        raise Misused(f"{source}: length must be 2 or more, examples 1 or more, seed 0 or more")
    if settings["length"] * settings["examples"] > MOST:
        raise Misused(f"{source}: examples times length may be at most {MOST:,}")
    return settings


def _open_digits(answers: Answers) -> LabelledSource:
    _fits(f"{BUILTIN}digits", answers, "class")

    def read() -> Iterator[Labelled]:
        try:
            from sklearn.datasets import load_digits
        except ImportError:
            raise DataError(f"{BUILTIN}digits: needs scikit-learn; install it with: pip install scikit-learn") from None
        found = load_digits()
        for i, (image, label) in enumerate(zip(found.images, found.target)):
            answer = None if answers == "none" else str(label)
            yield Labelled((image / 16).astype(np.float32), answer, f"{BUILTIN}digits, image {i}")  # [8, 8]

    return LabelledSource(f"{BUILTIN}digits", "series", answers, read)
