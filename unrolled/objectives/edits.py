"""Error rates: how many edits turn what was written into what should have been, per unit of the latter.

    d(i, j) = min(d(i-1, j) + 1, d(i, j-1) + 1, d(i-1, j-1) + [a_i != b_j])       Levenshtein 1966
    rate = sum d(written, reference) / sum |reference|

Of characters for CER, of words for WER; it may pass 1. Totals are added over all texts first, so long texts count more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unrolled.core.errors import DataError
from unrolled.objectives.corpus import Array


def edit_distance(written: Sequence[Any], reference: Sequence[Any]) -> int:
    """The fewest insertions, deletions and replacements that make one of the other.

    >>> edit_distance("kitten", "sitting"), edit_distance(["a", "b"], ["b"])
    (3, 1)
    """
    above = list(range(len(reference) + 1))  # d(i-1, .)
    for i, a in enumerate(written, start=1):
        row = [i]  # d(i, .)
        for j, b in enumerate(reference, start=1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
        above = row
    return above[-1]


def character_statistics(written: Sequence[str], references: Sequence[str]) -> Array:
    """[n, 2]: edits of characters, and how many characters the reference has.

    >>> character_statistics(["seven", "to"], ["seven", "two"]).tolist()
    [[0.0, 5.0], [1.0, 3.0]]
    """
    return _statistics(written, references)


def word_statistics(written: Sequence[str], references: Sequence[str]) -> Array:
    """[n, 2]: edits of words, which stand between spaces, and how many words the reference has.

    >>> word_statistics(["a red ring"], ["a small red ring"]).tolist()
    [[1.0, 4.0]]
    """
    return _statistics([text.split() for text in written], [text.split() for text in references])


def _statistics(written: Sequence[Sequence[Any]], references: Sequence[Sequence[Any]]) -> Array:
    if len(written) != len(references) or not any(references):
        raise DataError(f"{len(written)} texts cannot be compared with {len(references)} references")
    return np.array([[edit_distance(*texts), len(texts[1])] for texts in zip(written, references)], np.float64)
