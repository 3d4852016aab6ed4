"""Whole numbers in words, in English and French, up to 999,999.

English: British "and" is left out, tens and ones are joined by a hyphen: nine hundred ninety-nine thousand one.
French: the traditional spelling, with hyphens below one hundred except around "et", "cent" and "vingt" in the plural
where nothing follows: quatre-vingts, quatre-vingt-un, deux cents, deux cent mille, soixante et onze.
"""

from __future__ import annotations

LARGEST = 999_999
ENGLISH = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
ENGLISH_TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
FRENCH = [
    "zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze", "douze", "treize",
    "quatorze", "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf",
]  # fmt: skip
FRENCH_TENS = [
    "", "", "vingt", "trente", "quarante", "cinquante", "soixante", "soixante", "quatre-vingt", "quatre-vingt",
]  # fmt: skip


def english(n: int) -> str:
    """
    >>> english(0), english(321), english(70_012)
    ('zero', 'three hundred twenty-one', 'seventy thousand twelve')
    """
    if n < 20:
        return ENGLISH[n]
    if n < 100:
        return ENGLISH_TENS[n // 10] + (f"-{ENGLISH[n % 10]}" if n % 10 else "")
    for size, word in ((1000, "thousand"), (100, "hundred")):
        if n >= size:
            rest = f" {english(n % size)}" if n % size else ""
            return f"{english(n // size)} {word}{rest}"
    raise AssertionError(n)


def french(n: int) -> str:
    """
    >>> french(71), french(80), french(81), french(200), french(200_000), french(1_001)
    ('soixante et onze', 'quatre-vingts', 'quatre-vingt-un', 'deux cents', 'deux cent mille', 'mille un')
    """
    return _french(n, last=True)


def _french(n: int, last: bool) -> str:
    """`last`: nothing follows, so that cent and vingt may have their s."""
    if n < 20:
        return FRENCH[n]
    if n < 100:
        tens, ones = divmod(n, 10)
        if tens in (7, 9):
            ones += 10
        if ones == 0:
            return FRENCH_TENS[tens] + ("s" if tens == 8 and last else "")
        joined = " et " if ones in (1, 11) and tens < 8 else "-"
        return FRENCH_TENS[tens] + joined + FRENCH[ones]
    if n < 1000:
        hundreds, rest = divmod(n, 100)
        count = "" if hundreds == 1 else f"{FRENCH[hundreds]} "
        if rest == 0:
            return f"{count}cent" + ("s" if hundreds > 1 and last else "")
        return f"{count}cent {_french(rest, last)}"
    thousands, rest = divmod(n, 1000)
    count = "" if thousands == 1 else f"{_french(thousands, last=False)} "
    return f"{count}mille" + (f" {_french(rest, last)}" if rest else "")


SPELLERS = {"english": english, "french": french}
