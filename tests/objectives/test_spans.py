"""Spans of tags, by hand."""

from __future__ import annotations

import pytest

from unrolled.objectives.classes import class_table, f1, micro_f1
from unrolled.objectives.spans import is_bio, span_hits, spans

CASES = {
    "": [],
    "O O O": [],
    "B-A": [("A", 0, 1)],
    "B-A I-A I-A": [("A", 0, 3)],
    "O B-A I-A O": [("A", 1, 3)],
    "B-A B-A": [("A", 0, 1), ("A", 1, 2)],
    "B-A I-B": [("A", 0, 1), ("B", 1, 2)],
    "I-A I-A": [("A", 0, 2)],
    "O I-A B-A I-A": [("A", 1, 2), ("A", 2, 4)],
    "B-A O I-A": [("A", 0, 1), ("A", 2, 3)],
    "I-A I-B I-A": [("A", 0, 1), ("B", 1, 2), ("A", 2, 3)],
    "B-multi-part I-multi-part": [("multi-part", 0, 2)],
}


@pytest.mark.parametrize(("line", "wanted"), CASES.items(), ids=lambda value: value or "nothing")
def test_spans_by_hand(line: str, wanted: list[tuple[str, int, int]]) -> None:
    assert spans(line.split()) == wanted


def hits(predicted: str, actual: str):
    return span_hits([line.split() for line in predicted.split("|")], [line.split() for line in actual.split("|")])


def test_a_span_is_found_as_a_whole_or_not_at_all() -> None:
    """One of two found, one cut short: P = 1/3, R = 1/2."""
    kinds, found = hits("B-A I-A O B-B O B-A", "B-A I-A O B-B I-B O")
    assert kinds == ["A", "B"]
    assert [part.tolist() for part in found] == [[1, 0], [1, 1], [0, 1]]
    assert micro_f1(found) == pytest.approx(2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2))
    assert class_table(found, kinds)[1] == {"label": "B", "precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1}


def test_kind_and_both_ends_must_be_right() -> None:
    assert micro_f1(hits("B-A I-A", "B-A I-A")[1]) == 1
    for wrong in ("B-B I-B", "B-A O", "O B-A", "B-A B-A"):
        assert micro_f1(hits(wrong, "B-A I-A")[1]) == 0


def test_spans_of_different_sentences_do_not_meet() -> None:
    kinds, found = hits("B-A|I-A", "B-A|B-A")
    assert (kinds, found.found.tolist(), f1(found).tolist()) == (["A"], [2], [1.0])


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="2 predicted tags for 1"):
        hits("O O", "O")


def test_which_tags_mark_spans() -> None:
    assert is_bio({"B-PER", "I-PER", "O"})
    assert is_bio({"I-NP", "O"})
    assert not is_bio({"B-PER", "NN"})
    assert not is_bio({"O"})
    assert not is_bio({"B-", "O"})
