"""Pairs that need no file, generated from a seed.

    builtin:dates                        dates in 24 languages and 12 styles -> ISO (see pair_dates)
    builtin:numbers,from=french          numbers in words, English -> French or French -> English
    builtin:reversal,length=20           random letters -> the same from the last to the first

Settings follow the name with commas: examples and seed, and those shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from unrolled.core.errors import DataError, Misused, nearest
from unrolled.core.opening import shortened
from unrolled.data.labelled import BUILTIN
from unrolled.data.number_words import LARGEST, SPELLERS
from unrolled.data.pair_dates import read_dates
from unrolled.data.pairs import Pair, PairSource
from unrolled.data.pairs_config import PairReading

LONGEST = 10_000  # letters of a string to reverse
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Problem:
    """A generated set: its usual settings, and its pairs."""

    settings: dict[str, Any]
    read: Callable[[dict[str, Any]], Iterator[Pair]]


def read_numbers(settings: dict[str, Any]) -> Iterator[Pair]:
    """The first thousand numbers and others at random, each once; the split holds numbers out."""
    first = settings["from"]
    if first not in SPELLERS:
        raise Misused(f"builtin:numbers: from = '{first}' is not possible; {nearest(str(first), SPELLERS)}")
    second = next(name for name in SPELLERS if name != first)
    random = np.random.default_rng(int(settings["seed"]))
    more = random.choice(np.arange(1000, LARGEST + 1), max(0, int(settings["examples"]) - 1000), replace=False)
    for number in [*range(min(1000, int(settings["examples"]))), *more.tolist()]:
        yield Pair(SPELLERS[first](number), SPELLERS[second](number), f"builtin:numbers, the number {number}")


def read_reversal(settings: dict[str, Any]) -> Iterator[Pair]:
    """Different words of 1 to `length` letters, all lengths alike."""
    random = np.random.default_rng(int(settings["seed"]))
    seen: set[str] = set()
    for _ in range(100 * int(settings["examples"])):
        length = int(random.integers(1, int(settings["length"]) + 1))
        word = "".join(LETTERS[i] for i in random.integers(len(LETTERS), size=length))
        if word not in seen:
            seen.add(word)
            yield Pair(word, word[::-1], f"builtin:reversal, pair {len(seen)}")
        if len(seen) == int(settings["examples"]):
            return


PROBLEMS = {
    "dates": Problem({"examples": 30_000, "seed": 0}, read_dates),
    "numbers": Problem({"examples": 20_000, "seed": 0, "from": "english"}, read_numbers),
    "reversal": Problem({"examples": 20_000, "seed": 0, "length": 20}, read_reversal),
}


def open_builtin(source: str, reading: PairReading) -> PairSource:
    """`builtin:NAME,setting=value` as pairs."""
    name, *words = source.removeprefix(BUILTIN).split(",")
    if name not in PROBLEMS:
        raise Misused(f"there are no built-in pairs '{name}'; {nearest(name, PROBLEMS)}")
    problem = PROBLEMS[name]
    settings = {**problem.settings, **_settings(source, words, problem.settings)}

    def read() -> Iterator[Pair]:
        return problem.read(settings)

    return PairSource(source, read, reading)


def _settings(source: str, words: list[str], known: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in known:
            raise Misused(f"{source}: there is no setting '{key}'; {nearest(key, known)}")
        if isinstance(known[key], str):
            found[key] = value
            continue
        least = 0 if key == "seed" else 1
        most = LONGEST if key == "length" else 10**18
        if not value.isdigit() or len(value) > 18 or not least <= int(value) <= most:
            raise Misused(
                f"{source}: {key} = '{shortened(value)}' is not possible: write a whole number from {least} to {most:,}"
            )
        found[key] = int(value)
    if int(found.get("examples", 1)) > LARGEST:
        raise DataError(f"{source}: at most {LARGEST:,} examples are made")
    if "length" in known:
        asked = {**known, **found}
        there = sum(
            len(LETTERS) ** n for n in range(1, min(int(asked["length"]), 5) + 1)
        )  # more than LARGEST from 5 on
        if int(asked["examples"]) > there:
            raise Misused(f"{source}: there are only {there:,} words of up to {asked['length']} letters; ask for fewer")
    return found
