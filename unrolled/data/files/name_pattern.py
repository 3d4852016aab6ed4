"""Regular expressions for the names of files, in time that is linear in the length of a name.

An expression may be saved in a run, and a run may come from anybody. Python's `re` tries again and again: `(a+)+b`
takes years on a name of 60 letters, and no rule about the syntax tells such expressions from useful ones. The automata
of Rust's `regex`, which polars brings, read each letter once for every place in the expression (Thompson 1968). They
have no look-around and no back-references; everything else is written as in Python.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence

LONGEST = 500  # letters of an expression
MOST = 1000  # repetitions that it may count to, all counts multiplied
COUNTS = re.compile(r"\{\s*(\d*)\s*(?:,\s*(\d*)\s*)?\}")


def check_pattern(text: str | None) -> str | None:
    """The expression, which has the group `answer`; a ValueError says what is wrong with it."""
    if text is not None and "answer" not in _checked(text):
        raise ValueError(f"'{_short(text)}' has no group (?P<answer>...)")
    return text


def check_groups(text: str | None) -> str | None:
    """The expression, which has groups of any names."""
    if text is not None and not _checked(text):
        raise ValueError(f"'{_short(text)}' has no group such as (?P<digit>...)")
    return text


def _short(text: str) -> str:
    return text if len(text) <= 100 else text[:100] + "…"


def _checked(text: str) -> list[str]:
    """The names of the groups."""
    shown = _short(text)
    if len(text) > LONGEST:
        raise ValueError(f"'{shown}' is too long: expected at most {LONGEST} letters")
    counts = [max((int(n[:9]) for n in found if n), default=1) or 1 for found in COUNTS.findall(text)]
    if math.prod(counts) > MOST:
        raise ValueError(f"'{shown}' has too many counted repetitions (at most {MOST} in product); use * or + instead")
    return [name for name in _groups([""], text, shown)[0] if not name.isdigit()]


def groups_in(names: Sequence[str], pattern: str) -> list[dict[str, str | None]]:
    """The groups of each name, all None where it does not fit.

    >>> groups_in(["7_ann.wav", "notes.txt"], r"(?P<answer>\\d)_(?P<who>\\w+)")
    [{'answer': '7', 'who': 'ann'}, {'answer': None, 'who': None}]
    """
    return _groups(names, pattern, pattern)


def _groups(names: Sequence[str], pattern: str, shown: str) -> list[dict[str, str | None]]:
    import polars

    texts = [os.fsencode(name).decode("utf-8", "replace") for name in names]
    try:
        return polars.Series(texts, dtype=polars.String).str.extract_groups(pattern).to_list()
    except polars.exceptions.PolarsError as error:
        why = str(error).strip().splitlines()[-1].removeprefix("error: ").rstrip(".")
        raise ValueError(f"'{shown}' is not a supported regular expression ({why})") from None
