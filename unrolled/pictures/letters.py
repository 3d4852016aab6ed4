"""Words and numbers as pictures show them: whitespace made visible, long names shortened, nothing that breaks a page.

Text from data may hold anything: control letters, half a surrogate pair, a line end as a token of its own. HTML and SVG
cannot hold all of that, so every text passes through `clean` (running text) or `visible` (names of tokens).
"""

from __future__ import annotations

import math
import re

SIGNS = {" ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥", "\u00a0": "⍽", "\u2028": "↵", "\u2029": "↵"}
LONGEST = 18  # letters of a name beside an axis
NAMES = {"chrf": "chrF", "bleu": "BLEU"}  # metrics that are not written as their key is

_NO_LETTERS = "".join(chr(plane * 0x10000 + last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control letters but the tab and the line end: they steer terminals
    "\u202a-\u202e\u2066-\u2069"  # these change the direction of all that follows
    f"\ud800-\udfff\ufdd0-\ufdef{_NO_LETTERS}]"  # halves of pairs, and what is no letter at all
)


def _printable(letter: str) -> str:
    """A letter that terminals, HTML and XML may hold; a control letter becomes its picture."""
    if not UNSAFE.match(letter) and letter not in "\n\t":
        return letter
    code = ord(letter)
    return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else "\ufffd"


def clean(text: object) -> str:
    r"""Running text with its lines and tabs, without what steers a terminal or what a page cannot hold.

    >>> clean("a\r\nb\x00\ud800\x1b[31m")
    'a\nb␀�␛[31m'
    """
    lines = str(text).replace("\r\n", "\n").replace("\r", "\n")
    return UNSAFE.sub(lambda found: _printable(found[0]), lines)


def visible(token: object) -> str:
    r"""The name of a token on one line, where a space can be seen.

    >>> visible(" the"), visible("\n"), visible("\t"), visible("")
    ('␣the', '↵', '⇥', '∅')
    """
    return "".join(SIGNS.get(letter) or _printable(letter) for letter in str(token)) or "∅"


def name_of(thing: object) -> str:
    """A name in which spaces between words stay what they are.

    >>> name_of("capital letter"), name_of(" capital")
    ('capital letter', '␣capital')
    """
    text = str(thing)
    return text if text and text == text.strip() and text.isprintable() else visible(text)


def shortened(name: object, longest: int = LONGEST) -> str:
    """A name that fits beside an axis: its begin and its end.

    >>> shortened("a_very_long_name_of_a_token", 12)
    'a_very_…oken'
    """
    text = str(name)
    if len(text) <= longest:
        return text
    tail = longest // 3
    return f"{text[: longest - tail - 1]}…{text[len(text) - tail :]}"


def phrase(text: object, longest: int = 120) -> str:
    """Running text as drawings hold it: of a million letters, which a saved picture may have, the begin and the end."""
    return shortened(clean(text), longest)


def plain_number(value: float | int | None) -> str:
    """A number with as many digits as are read.

    >>> [plain_number(value) for value in (None, 0, 12345, 1.23456, 0.00001234, 1234.5, 2e9)]
    ['', '0', '12,345', '1.235', '1.23e-05', '1,234.5', '2e+09']
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e7):
        return f"{int(value):,}"
    if abs(value) >= 1e7 or abs(value) < 1e-3:
        return f"{value:.3g}"
    if abs(value) >= 100:
        return f"{value:,.1f}"
    return f"{value:.4g}"


def rounded_number(value: float | int | None, digits: int) -> str:
    """The same with so many digits where that is precise enough. Only a fraction is rounded: a count stays what it is.

    >>> [rounded_number(value, 2) for value in (167, 167.0, 12345, 167.31, 0.8765, 1.234e-7, None)]
    ['167', '167', '12,345', '167', '0.88', '1.2e-07', '']
    """
    if value is None or isinstance(value, int) or not math.isfinite(value) or float(value).is_integer():
        return plain_number(value)
    whole = len(str(int(abs(value)))) if abs(value) < 1e7 else 0
    return plain_number(float(f"{value:.{max(digits, whole)}g}"))


def title_words(key: str) -> str:
    """A key of a file as words.

    >>> title_words("bits_per_character"), title_words("chrf")
    ('bits per character', 'chrF')
    """
    return NAMES.get(key) or str(key).replace("_", " ")
