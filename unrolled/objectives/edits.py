"""Error rates: how many edits turn what was written into what should have been, per unit of the latter.

    d(i, j) = min(d(i-1, j) + 1, d(i, j-1) + 1, d(i-1, j-1) + [a_i != b_j])       Levenshtein 1966
    rate = sum d(written, reference) / sum |reference|

Of characters for CER, of words for WER; it may pass 1. Totals are added over all texts first, so long texts count more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unrolled.core.errors import DataError


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


def character_edits(written: Sequence[str], references: Sequence[str]) -> tuple[int, int]:
    """Edits of characters, and how many characters the references have.

    >>> character_edits(["seven", "to"], ["seven", "two"])
    (1, 8)
    """
    return _edits(written, references)


def word_edits(written: Sequence[str], references: Sequence[str]) -> tuple[int, int]:
    """Edits of words, which stand between spaces, and how many words the references have.

    >>> word_edits(["a red ring"], ["a small red ring"])
    (1, 4)
    """
    return _edits([text.split() for text in written], [text.split() for text in references])


def _edits(written: Sequence[Sequence[Any]], references: Sequence[Sequence[Any]]) -> tuple[int, int]:
    if len(written) != len(references) or not any(references):
        raise DataError(f"{len(written)} texts cannot be compared with {len(references)} references")
    return sum(map(edit_distance, written, references)), sum(map(len, references))
