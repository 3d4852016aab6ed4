"""The words of target texts, from which it follows whether they are sentences or short strings. Imports no torch."""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import NamedTuple

import numpy as np

from unrolled.core.tokens import UNKNOWN
from unrolled.data.codecs.text import Codec
from unrolled.data.examples import Examples

LOOKED_AT = 2000  # targets, evenly spread
LONGEST = 12  # letters of a word; more are several, in writing that has no spaces
FEW_WORDS = 3  # in a target: a date, a number, a name, a word
FEW_DIFFERENT, OFTEN = 200, 20  # words that all targets are made of, and how often each is used


class TargetWords(NamedTuple):
    """What is known of the targets of training."""

    median: float  # words of a target
    different: int
    used: float  # how often each is, in the mean

    @property
    def are_strings(self) -> bool:
        """Whether a target is right or wrong as a whole: most have three words or fewer (dates, names, numbers in
        digits), or all are made of 200 words or fewer, each of which is used often (numbers in words, sounds)."""
        return self.median <= FEW_WORDS or (self.different <= FEW_DIFFERENT and self.used >= OFTEN)


def words_in(text: str) -> list[str]:
    """Words stand between spaces; a sign of a writing that has none (Chinese, Japanese) is one by itself.

    >>> words_in("2024-05-17"), words_in("two small cats"), words_in("我喜欢 cats")
    (['2024-05-17'], ['two', 'small', 'cats'], ['我', '喜', '欢', 'cats'])
    """
    spaced = "".join(f" {letter} " if unicodedata.east_asian_width(letter) == "W" else letter for letter in text)
    return [word[i : i + LONGEST] for word in spaced.split() for i in range(0, len(word), LONGEST)]


def target_words(section: Examples, codec: Codec) -> TargetWords:
    """Of some targets of the training split; each unknown token is a word of its own."""
    some = section.spread(LOOKED_AT)
    counts, lengths, unknown = Counter[str](), [], 0
    for tokens in (target.tolist() for target in some.fields["target"]):
        words, strange = words_in(codec.decode([t for t in tokens if t != UNKNOWN])), tokens.count(UNKNOWN)
        counts.update(words)
        lengths.append(len(words) + strange)
        unknown += strange
    different = len(counts) + unknown
    return TargetWords(float(np.median(lengths)), different, round((counts.total() + unknown) / max(different, 1), 2))
