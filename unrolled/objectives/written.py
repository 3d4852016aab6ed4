"""What is written beside what should have been written: exact matches, BLEU and chrF of a whole set of texts.

    BLEU = min(1, exp(1 - r / c)) (prod_{n=1..4} p_n)^(1/4)                       Papineni et al. 2002
    chrF = (1 + 2^2) P R / (2^2 P + R)                                           Popovic 2015, beta = 2

p_n: the share of the n-grams of words that are in the reference, c and r the lengths of output and reference in words;
P and R: precision and recall of the n-grams of characters, n = 1..6. Both are by sacrebleu (Post 2018), whose signature
says how texts were cut into words; both go from 0 to 100.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unrolled.core.errors import DataError


class Scored(NamedTuple):
    """A figure of a set of texts, and how it was computed."""

    score: float
    signature: str


def exact_matches(written: Sequence[str], references: Sequence[str]) -> tuple[int, int]:
    """How many texts are just as they should be, and how many there are.

    >>> exact_matches(["a b", "c"], ["a b", "d"])
    (1, 2)
    """
    _check(written, references)
    return sum(one == other for one, other in zip(written, references)), len(references)


def corpus_bleu(written: Sequence[str], references: Sequence[str]) -> Scored:
    """BLEU with sacrebleu's own tokenisation (13a) and exponential smoothing.

    >>> round(corpus_bleu(["the cat sat on the mat"], ["the cat sat on the mat"]).score, 6)
    100.0
    """
    from sacrebleu.metrics import BLEU

    _check(written, references)
    metric = BLEU()
    score = float(metric.corpus_score(list(written), [list(references)]).score)
    return Scored(score, str(metric.get_signature()))


def corpus_chrf(written: Sequence[str], references: Sequence[str]) -> Scored:
    """chrF2: recall counts twice as much as precision.

    >>> round(corpus_chrf(["abc"], ["abc"]).score, 6)
    100.0
    """
    from sacrebleu.metrics import CHRF

    _check(written, references)
    metric = CHRF()
    score = float(metric.corpus_score(list(written), [list(references)]).score)
    return Scored(score, str(metric.get_signature()))


def _check(written: Sequence[str], references: Sequence[str]) -> None:
    if len(written) != len(references) or not references:
        raise DataError(f"{len(written)} texts cannot be compared with {len(references)} references")
