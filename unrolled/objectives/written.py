"""What is written beside what should have been written: statistics of each text for exact matches, chrF and BLEU.

    chrF    n-grams of characters without spaces, n = 1..6         Popovic 2015, beta = 2
    BLEU    n-grams of words, n = 1..4, and lengths in words       Papineni et al. 2002

How the metrics of all texts follow from the sums is in `corpus`; both are those of sacrebleu (Post 2018), whose
signature says how texts were cut into words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from unrolled.core.errors import DataError
from unrolled.objectives.corpus import CHARACTERS, Array


def exact_statistics(written: Sequence[str], references: Sequence[str]) -> Array:
    """[n, 2]: whether each text is just as it should be, and 1.

    >>> exact_statistics(["a b", "c"], ["a b", "d"]).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    check(written, references)
    return np.array([[one == other, 1] for one, other in zip(written, references)], np.float64)


def chrf_statistics(written: Sequence[str], references: Sequence[str]) -> Array:
    """[n, 18]: for n = 1..6 the n-grams of characters of the text, of the reference, and of both."""
    check(written, references)
    return np.array([_characters(*texts) for texts in zip(written, references)], np.float64)


def _characters(written: str, reference: str) -> list[int]:
    one, other = "".join(written.split()), "".join(reference.split())
    found: list[int] = []
    for n in range(1, CHARACTERS + 1):
        h, r = (Counter(text[i : i + n] for i in range(len(text) - n + 1)) for text in (one, other))
        found += [h.total() if r else 0, r.total(), (h & r).total()]  # as sacrebleu: no reference, nothing to be wrong
    return found


def bleu_statistics(written: Sequence[str], references: Sequence[str]) -> Array:
    """[n, 10]: words of the text and of the reference; n-grams of both, and of the text, for n = 1..4."""
    from sacrebleu.metrics import BLEU

    check(written, references)
    metric = BLEU(effective_order=True)  # which its single texts ask for; counts are the same
    each = [metric.sentence_score(one, [other]) for one, other in zip(written, references)]
    return np.array([[one.sys_len, one.ref_len, *one.counts, *one.totals] for one in each], np.float64)


def signatures() -> dict[str, str]:
    """How sacrebleu calls what is computed here."""
    from sacrebleu.metrics import BLEU, CHRF

    found = {}
    for name, metric in (("bleu", BLEU()), ("chrf", CHRF())):
        metric.corpus_score(["a"], [["a"]])  # tells it how many references there are
        found[name] = str(metric.get_signature())
    return found


def check(written: Sequence[str], references: Sequence[str]) -> None:
    if len(written) != len(references) or not references:
        raise DataError(f"{len(written)} texts cannot be compared with {len(references)} references")
