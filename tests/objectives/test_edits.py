"""Edit distances against every way to align two short texts."""

from __future__ import annotations

import itertools
from functools import cache

import pytest

from unrolled.core.errors import DataError
from unrolled.objectives.edits import character_statistics, edit_distance, word_statistics


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


def test_edits_and_lengths_of_every_text() -> None:
    assert character_statistics(["abc", ""], ["abd", "xy"]).tolist() == [[1, 3], [2, 2]]
    assert word_statistics(["one two", "three"], ["one too many", "three"]).tolist() == [[2, 3], [0, 1]]


def test_nothing_to_compare_with() -> None:
    with pytest.raises(DataError, match="1 texts cannot be compared with 2"):
        character_statistics(["a"], ["a", "b"])
    with pytest.raises(DataError, match="cannot be compared"):
        word_statistics(["a"], [""])
