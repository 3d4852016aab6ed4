"""Dates as people write them, in many languages and styles, with the ISO form: `5 marzo 2024` -> `2024-03-05`.

The words and patterns are those of the Unicode Common Locale Data Repository, through Babel. No text has two readings:
a style that writes the month as a number between dots or slashes is left out, years have four digits, and languages in
which one word names two months (Croatian listopad is October, Polish listopad November) are not both here.

Held out are days, for validation and for test, and for test also pairs of a language and a style, such as Finnish with
hyphens. Of such a pair the language was seen in other styles (its months written out or shortened, and its weekdays, in
just this form), and the style in other languages.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field

from unrolled.core.config import Config
from unrolled.core.data_spec import BuiltinSpec, Made
from unrolled.core.errors import DataError

LANGUAGES = (
    "en", "de", "fr", "es", "it", "pt", "nl", "sv", "fi", "pl", "cs", "hu", "ro", "tr", "el", "ru", "uk", "id", "vi",
    "zh", "ko", "lt", "lv", "et",
)  # fmt: skip
STYLES = (
    "full", "long", "medium", "d MMMM y", "MMMM d, y", "y MMMM d", "EEEE d MMMM y", "EEEE, y MMMM d", "dd-MMM-y",
    "d MMM y", "y MMM d", "MMM d, y",
)  # fmt: skip
"""Names of CLDR, or patterns: y year, MMMM month, MMM month shortened, d day, EEEE weekday."""
FIELD = re.compile(r"'[^']*'|([yMdEc])\1*")
FIRST, LAST = datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)
NEW_DATES, NEW_STYLES = "new dates", "new combinations"
SHARES = {"valid": 0.05, "test": 0.05}  # of all days
HELD_OUT = 1000  # pairs of validation, and of each kind of test


class Combination(NamedTuple):
    """A language and a style, with the pattern it comes to."""

    language: str
    style: str
    pattern: str

    @property
    def needs(self) -> set[str]:
        """What must have been seen of the language to read it: which months and weekdays."""
        month = "MMMM" if "MMMM" in self.pattern else "MMM" if "MMM" in self.pattern else "M"
        return {month, *(["E"] if any(letter in self.pattern for letter in "Ec") else [])}


@cache
def _names(language: str) -> dict[str, Any]:
    """The months and weekdays (Monday is 0) of a language, by the letters that stand for them in patterns."""
    from babel.dates import get_day_names, get_month_names

    found = {
        "MMMM": get_month_names("wide", locale=language),
        "MMM": get_month_names("abbreviated", locale=language),
        "EEEE": get_day_names("wide", locale=language),
        "cccc": get_day_names("wide", context="stand-alone", locale=language),
    }
    return {letters: dict(names.items()) for letters, names in found.items()}  # Babel's own mappings are slow


def write(day: datetime.date, combination: Combination) -> str:
    """A day as this language and style have it, with plain spaces: what Babel's `format_date` gives, but quicker.

    >>> write(datetime.date(2024, 3, 5), Combination("es", "long", "d 'de' MMMM 'de' y"))
    '5 de marzo de 2024'
    """
    names = _names(combination.language)
    numbers = {
        "y": f"{day.year}",
        "M": f"{day.month}",
        "MM": f"{day.month:02}",
        "d": f"{day.day}",
        "dd": f"{day.day:02}",
    }

    def fill(found: re.Match[str]) -> str:
        letters = found[0]
        if letters[0] == "'":
            return letters[1:-1]
        if letters in numbers:
            return numbers[letters]
        return str(names[letters][day.weekday() if letters[0] in "Ec" else day.month])

    return " ".join(FIELD.sub(fill, combination.pattern).split())


@lru_cache(maxsize=1)
def combinations() -> tuple[Combination, ...]:
    """Every language with every style that says which number is the month."""
    try:
        from babel.dates import get_date_format
    except ImportError:
        raise DataError(
            "builtin:dates: the package Babel is not installed; install it with: pip install Babel"
        ) from None
    found = []
    for language in LANGUAGES:
        known: dict[str, str] = {}
        for style in STYLES:
            named = style in ("full", "long", "medium")
            pattern = str(get_date_format(style, locale=language).pattern) if named else style  # type: ignore[arg-type]
            if ("MMM" in pattern or "月" in pattern) and pattern not in known:
                known[pattern] = style
        found += [Combination(language, style, pattern) for pattern, style in known.items()]
    return tuple(found)


def held_out() -> tuple[Combination, ...]:
    """One combination of each language that can spare it, the styles in turn."""
    chosen: list[Combination] = []
    for number, language in enumerate(LANGUAGES):
        own = [each for each in combinations() if each.language == language]
        spare = [each for each in own if _spared(each, own)]
        if spare:
            chosen.append(spare[number * 5 % len(spare)])
    return tuple(chosen)


def _spared(one: Combination, own: list[Combination]) -> bool:
    """Whether the other combinations of the language show what this one needs."""
    others = set().union(*(other.needs for other in own if other != one))
    return one.needs <= others and len(own) > 2


def parts(days: int, random: np.random.Generator) -> dict[str, list[datetime.date]]:
    """Every day of the two centuries in one part."""
    order = random.permutation(days)
    bounds = np.cumsum([round(days * share) for share in SHARES.values()])
    groups = dict(zip((*SHARES, "train"), np.split(order, bounds)))
    return {part: [FIRST + datetime.timedelta(int(n)) for n in numbers] for part, numbers in groups.items()}


class Settings(Config):
    """How much is made."""

    examples: int = Field(30_000, ge=1, le=999_999)
    """Number of training pairs."""
    seed: int = Field(0, ge=0, le=10**18)
    """Random seed of dates and styles."""


def read(settings: Settings) -> Iterator[Made]:
    """Training, validation, and both kinds of test."""
    yield from _pairs(settings.examples, settings.seed)


@lru_cache(maxsize=1)
def _pairs(examples: int, seed: int) -> list[Made]:
    return list(_drawn(examples, np.random.default_rng(seed)))


def _drawn(examples: int, random: np.random.Generator) -> Iterator[Made]:
    days = parts((LAST - FIRST).days + 1, random)
    new = held_out()
    old = [each for each in combinations() if each not in set(new)]
    few = min(HELD_OUT, max(1, examples // 10))
    seen: set[str] = set()
    plan = [("train", days["train"], old, "", examples), ("valid", days["valid"], old, "", few)]
    plan += [("test", days["test"], old, NEW_DATES, few), ("test", days["train"], list(new), NEW_STYLES, few)]
    number = 0
    for part, dates, styles, kind, wanted in plan:
        for d, s in random.integers((len(dates), len(styles)), size=(10 * wanted, 2)):
            day, combination = dates[d], styles[s]
            text = write(day, combination)
            if text in seen:  # also where two languages write a day alike
                continue
            seen.add(text)
            number += 1
            yield Made(text, day.isoformat(), f"pair {number}", part, kind)
            wanted -= 1
            if wanted == 0:
                break


BUILTIN = BuiltinSpec(
    summary="dates in 24 languages and 12 styles with their ISO form, for translate; new dates and pairs held out",
    licence="Unicode (through Babel)",
    size="33,000 pairs",
    holds="pairs",
    use="translate",
    settings=Settings,
    read=read,
)
