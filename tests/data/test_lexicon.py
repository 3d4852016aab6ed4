"""Words with their pronunciations, one entry a line."""

from __future__ import annotations

import pytest

import unrolled
from unrolled.data.reading import PairReading
from unrolled.data.sources.lexicon import are_entries
from unrolled.data.sources.open_pairs import open_pairs

LINES = [
    "# a comment alone",
    ";;; another",
    *(f"word{i} W ER{i % 3} D" for i in range(40)),
    "word3(2) W AH0 D # place",
    "",
]


@pytest.fixture
def lexicon(tmp_path):
    path = tmp_path / "words.dict"
    path.write_text("\n".join(LINES), encoding="utf-8")
    return path


def test_entries_become_pairs(lexicon):
    opened = open_pairs(lexicon, PairReading())
    found = [(pair.source, pair.target) for pair in opened]
    assert found[0] == ("word0", "W ER0 D")
    assert found[-1] == ("word3", "W AH0 D")  # of the same word, without the comment
    assert len(found) == 41
    notes = " ".join(opened.notes)
    assert "3 comments were left out" in notes
    assert "1 further pronunciations" in notes


def test_all_pronunciations_of_a_word_are_in_one_split(tmp_path):
    lines = [f"w{'abcdefgh'[i % 8]}{i}{'' if k == 0 else f'({k + 1})'} W ER{k} D" for i in range(60) for k in range(3)]
    (tmp_path / "w.dict").write_text("\n".join(lines), encoding="utf-8")
    told = unrolled.describe(tmp_path / "w.dict", split="60/20/20")
    assert told["task"] == "translate"
    assert told["in_train_too"] == {"valid": 0, "test": 0}
    assert told["duplicates"] == 120


@pytest.mark.parametrize("lines", [
    ["the cat sat on the mat and was seen"] * 30,  # words that are not different
    [f"word{i} and some other word{i + 1} or {i}" for i in range(30)],  # many different signs
    [f"{i} 0 1 0 1" for i in range(30)],  # numbers
    [f"word{i} X" for i in range(30)],  # a class, no sounds
    [f"word{i} W ER" for i in range(9)],  # too few
])  # fmt: skip
def test_other_lines_are_no_entries(lines):
    assert not are_entries(lines)
