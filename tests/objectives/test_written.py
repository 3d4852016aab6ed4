"""Figures of whole texts, beside cases that can be counted by hand."""

from __future__ import annotations

import math
from random import Random

import pytest
from sacrebleu.metrics import BLEU, CHRF

from unrolled.core.errors import DataError
from unrolled.objectives.corpus import value_of
from unrolled.objectives.written import bleu_statistics, chrf_statistics, exact_statistics, signatures


def corpus_bleu(written: list[str], references: list[str]) -> float:
    return float(value_of("bleu", bleu_statistics(written, references).sum(0)))


def corpus_chrf(written: list[str], references: list[str]) -> float:
    return float(value_of("chrf", chrf_statistics(written, references).sum(0)))


def test_bleu_by_hand():
    """p_1 = 5/6, p_2 = 3/5, p_3 = 2/4, p_4 = 1/3 and no brevity penalty."""
    found = corpus_bleu(["a b c d x f"], ["a b c d e f"])
    wanted = 100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert found == pytest.approx(wanted)
    short = corpus_bleu(["a b c d"], ["a b c d e"])
    assert short == pytest.approx(100 * math.exp(1 - 5 / 4))


def test_both_are_those_of_sacrebleu():
    """On random texts, empty ones and such without a match among them, to the last digits."""
    random = Random(0)

    def text() -> str:
        words = ("".join(random.choice("abc,.é") for _ in range(random.randint(0, 6))) for _ in range(8))
        return " ".join(list(words)[: random.randint(0, 8)])

    for _ in range(300):
        references = [text().strip() or "a" for _ in range(random.randint(1, 5))]
        written = [
            random.choice(["", "zz", each, each[: len(each) // 2], f"{each} b a", text()]) for each in references
        ]
        assert corpus_bleu(written, references) == pytest.approx(
            BLEU().corpus_score(written, [references]).score, abs=1e-9
        )
        assert corpus_chrf(written, references) == pytest.approx(
            CHRF().corpus_score(written, [references]).score, abs=1e-9
        )


def test_signatures_say_how():
    assert "tok:13a" in signatures()["bleu"] and "case:mixed" in signatures()["bleu"]
    assert "nc:6" in signatures()["chrf"] and signatures()["chrf"].startswith("nrefs:1")


def test_chrf_counts_letters():
    assert corpus_chrf(["abcdefg"], ["abcdefh"]) > corpus_chrf(["abcdefg"], ["zbcxefh"])
    assert corpus_chrf(["xyz"], ["abc"]) == 0


def test_exact_matches_need_a_reference_each():
    assert exact_statistics(["a", "b ", "c"], ["a", "b", "c"]).tolist() == [[1, 1], [0, 1], [1, 1]]
    for statistics in (exact_statistics, chrf_statistics, bleu_statistics):
        with pytest.raises(DataError, match="2 texts cannot be compared with 1 references"):
            statistics(["a", "b"], ["a"])
        with pytest.raises(DataError, match="0 texts cannot be compared with 0 references"):
            statistics([], [])
