"""What can go wrong: every error that a user can cause is an `UnrolledError`, and its text is one sentence.

    try:
        run = unrolled.train("reviews.csv", target="stars")
    except unrolled.errors.DataError as error:
        print(error)  # what is wrong, in which file, line and column, and what to do

The command line prints the sentence and exits with the class's `exit_code`. Imports no torch.
"""

from __future__ import annotations

from unrolled.core.errors import (
    CannotWrite,
    DataError,
    Diverged,
    Interrupted,
    MissingColumn,
    NotTrained,
    OutOfMemory,
    UnrolledError,
    UsageError,
)

__all__ = [
    "CannotWrite",
    "DataError",
    "Diverged",
    "Interrupted",
    "MissingColumn",
    "NotTrained",
    "OutOfMemory",
    "UnrolledError",
    "UsageError",
]
