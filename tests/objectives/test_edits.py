"""Edit distances against every way to align two short texts."""

from __future__ import annotations

import itertools
from functools import cache

import pytest

from unrolled.core.errors import DataError
from unrolled.objectives.edits import character_edits, edit_distance, word_edits


@cache
def by_trying(a: str, b: str) -> int:
    if not a or not b:
        return len(a) + len(b)
    return min(
        by_trying(a[1:], b) + 1, by_trying(a, b[1:]) + 1, by_trying(a[1:], b[1:]) + (a[0] != b[0])
    )  # fmt: skip


def test_distances_of_all_short_texts() -> None:
    texts = ["".join(letters) for n in range(5) for letters in itertools.product("ab", repeat=n)]
    for a, b in itertools.product(texts, repeat=2):
        assert edit_distance(a, b) == by_trying(a, b), (a, b)


def test_totals_are_over_all_texts() -> None:
    assert character_edits(["abc", ""], ["abd", "xy"]) == (3, 5)
    assert word_edits(["one two", "three"], ["one too many", "three"]) == (2, 4)


def test_nothing_to_compare_with() -> None:
    with pytest.raises(DataError, match="1 texts cannot be compared with 2"):
        character_edits(["a"], ["a", "b"])
    with pytest.raises(DataError, match="cannot be compared"):
        word_edits(["a"], [""])
