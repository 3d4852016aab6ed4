"""What can go wrong, by exit code: every error a user can cause is one of these, and its text is one sentence.

The command line prints the sentence and leaves with the code; Python code catches the class.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

MOST_NAMES = 40  # that a sentence lists where one of them was probably meant
MOST_SHOWN = 12  # that it lists of the names which some data has
LONGEST_NAME = 60  # characters of a name that it shows
LONGEST = 1500  # characters of a sentence


class UnrolledError(Exception):
    """A failure that is explained in one sentence: what is wrong, where, and what to do.

    Data is quoted in part only (`some`, and `shown` of cells); a sentence that is very long all the same, because of
    what a library says or of how a file is called, is cut in its middle.
    """

    exit_code = 1

    def __init__(self, text: str = "") -> None:
        half = LONGEST // 2
        super().__init__(text if len(text) <= LONGEST else f"{text[:half]} … {text[-half:]}")


class UsageError(UnrolledError):
    """An option, a name or a combination that cannot be (exit 2)."""

    exit_code = 2


class Misused(UsageError):
    """What is wrong however data is to be read: an empty path, one text in place of a list, no home directory."""


class MissingColumn(UsageError):
    """A column, or an array, that is to be read and that the data lacks: an option names it, or a saved run does."""

    def __init__(self, place: object, name: str, asked_by: str, known: Iterable[str], what: str = "column") -> None:
        found = list(known)
        lacks, hint = f"{place}: there is no {what} '{_brief(name)}'", nearest(name, found) if found else "it has none"
        super().__init__(f"{lacks} for {asked_by}; {hint}")
        self.for_run = f"{lacks}, which the run reads; {hint}"


def needs_extra(error: ImportError, extra: str, what: str = "this export") -> UsageError:
    """The sentence about a package that is not installed; `what` needs it."""
    return UsageError(
        f"the package {error.name} is not installed; {what} needs the extra [{extra}]: pip install 'unrolled[{extra}]'"
    )


class NotTrained(UsageError):
    """The time given was used up before the first training step; `needs` is an estimate of the seconds needed."""

    def __init__(self, text: str, needs: float) -> None:
        super().__init__(text)
        self.needs = needs


class DataError(UnrolledError):
    """Data, or a saved run, that cannot be used (exit 3)."""

    exit_code = 3


class Diverged(UnrolledError):
    """Training met NaN or infinity and could not recover (exit 4)."""

    exit_code = 4


class CannotWrite(UnrolledError):
    """The disk is full or the place cannot be written to (exit 5)."""

    exit_code = 5


class OutOfMemory(UnrolledError):
    """The model and the batch do not fit into memory (exit 6)."""

    exit_code = 6


class Interrupted(UnrolledError):
    """Stopped by Ctrl-C or SIGTERM after saving; the run can be resumed (exit 75)."""

    exit_code = 75


def listed(words: Iterable[object]) -> str:
    """Names in a sentence.

    >>> listed(["gru"]), listed(["gru", "tcn", "lstm"])
    ('gru', 'gru, tcn and lstm')
    """
    *most, last = [str(word) for word in words] or [""]
    return f"{', '.join(most)} and {last}" if most else last


def some(names: Iterable[object]) -> str:
    """The first of many names that some data has, for a sentence.

    >>> some(["a", "b"]), some(range(1000))
    ('a, b', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 988 more')
    """
    found = [str(name) for name in names]
    first = ", ".join(_brief(name) for name in found[:MOST_SHOWN])
    return first if len(found) <= MOST_SHOWN else f"{first} and {len(found) - MOST_SHOWN:,} more"


def _brief(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "…"


def nearest(name: str, known: Iterable[str], aliases: Mapping[str, str] | None = None) -> str:
    """The tail of a sentence that helps with a misspelt name; `aliases` are other words for known names.

    Case, underscores and spaces do not count. Where there are very many names the close one is named alone.

    >>> nearest("LSTMM", ["gru", "lstm"])
    "did you mean 'lstm'? Known: gru, lstm"
    >>> nearest("rnn", ["birnn", "elman"], {"rnn": "elman"})
    "did you mean 'elman'? Known: birnn, elman"
    >>> nearest("quantum", ["gru", "lstm"])
    'known: gru, lstm'
    """
    names = sorted(known)
    close = _closest(name[:LONGEST_NAME], names, aliases or {})
    listed = ", ".join(map(_brief, names))
    if not names:
        return "there are none"
    if close is None:
        return f"known: {listed}" if len(names) <= MOST_NAMES else f"none of the {len(names)} known names is similar"
    return f"did you mean '{_brief(close)}'?" + (f" Known: {listed}" if len(names) <= MOST_NAMES else "")


def _closest(name: str, names: Sequence[str], aliases: Mapping[str, str]) -> str | None:
    """The known name that is meant most probably: the same word, another word for it, or one spelt alike."""
    plain = {_plain(each): each for each in reversed(names)}
    other = {_plain(word): each for word, each in aliases.items() if each in names} | plain
    if _plain(name) in other:
        return other[_plain(name)]
    close = difflib.get_close_matches(_plain(name), list(other), n=1, cutoff=0.6) or difflib.get_close_matches(
        _plain(name), list(plain), n=1, cutoff=0.5
    )
    return other[close[0]] if close else None


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "-", name.strip().casefold())
