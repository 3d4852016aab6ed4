"""Figures of whole texts, beside cases that can be counted by hand."""

from __future__ import annotations

import math

import pytest

from unrolled.core.errors import DataError
from unrolled.objectives.written import corpus_bleu, corpus_chrf, exact_matches


def test_bleu_by_hand():
    """p_1 = 5/6, p_2 = 3/5, p_3 = 2/4, p_4 = 1/3 and no brevity penalty."""
    found = corpus_bleu(["a b c d x f"], ["a b c d e f"])
    wanted = 100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert found.score == pytest.approx(wanted)
    short = corpus_bleu(["a b c d"], ["a b c d e"])
    assert short.score == pytest.approx(100 * math.exp(1 - 5 / 4))


def test_signatures_say_how():
    assert "tok:13a" in corpus_bleu(["a"], ["a"]).signature
    assert "case:mixed" in corpus_bleu(["a"], ["a"]).signature
    assert "nc:6" in corpus_chrf(["a"], ["a"]).signature


def test_chrf_counts_letters():
    assert corpus_chrf(["abcdefg"], ["abcdefh"]).score > corpus_chrf(["abcdefg"], ["zbcxefh"]).score
    assert corpus_chrf(["xyz"], ["abc"]).score == 0


def test_exact_matches_need_a_reference_each():
    assert exact_matches(["a", "b ", "c"], ["a", "b", "c"]) == (2, 3)
    with pytest.raises(DataError, match="2 texts cannot be compared with 1 references"):
        exact_matches(["a", "b"], ["a"])
