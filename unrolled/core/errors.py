"""What can go wrong, by exit code: every error a user can cause is one of these, and its text is one sentence.

The command line prints the sentence and leaves with the code; Python code catches the class.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UnrolledError(Exception):
    """A failure that is explained in one sentence: what is wrong, where, and what to do."""

    exit_code = 1


class UsageError(UnrolledError):
    """An option, a name or a combination that cannot be (exit 2)."""

    exit_code = 2


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


def nearest(name: str, known: Iterable[str]) -> str:
    """The tail of a sentence that helps with a misspelt name.

    >>> nearest("lstmm", ["gru", "lstm"])
    "did you mean 'lstm'? Known: gru, lstm"
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    listed = f"Known: {', '.join(names)}" if names else "None are known"
    return f"did you mean '{close[0]}'? {listed}" if close else listed
