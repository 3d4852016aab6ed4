"""Text as plain words, without marks and spaces: what word vectors are vectors of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.core.batch import TARGET
from unrolled.core.errors import DataError
from unrolled.core.front import option
from unrolled.core.tokens import SPECIALS, UNKNOWN
from unrolled.data.codecs.word_list import WordListCodec
from unrolled.data.codecs.words import WORD, WordCodec
from unrolled.data.config import DataConfig
from unrolled.data.contexts import Text
from unrolled.data.examples import Examples
from unrolled.data.prepare import prepare
from unrolled.data.prepared import Prepared
from unrolled.data.sources.text import open_source

Case = Literal["lower", "keep"]
MOST = 1_000_000  # different words that are looked at, with their marks and cases


class PlainWords(NamedTuple):
    """Splits of a text, their codec, and how often each word occurs in training."""

    texts: dict[str, Text]
    codec: WordListCodec
    counts: NDArray[np.int64]  # [V]
    prepared: Prepared


def cut(text: str, case: Case) -> list[str]:
    """The words of a text.

    >>> cut("The cat's paw, 3 times.", "lower")
    ['the', "cat's", 'paw', '3', 'times']
    """
    words = [word.strip() for word in WORD.findall(text.lower() if case == "lower" else text)]
    return [word for word in words if word and (word[0].isalnum() or word[0] == "_")]


def read(source: Any, config: DataConfig, case: Case, least: int, codec: WordListCodec | None) -> PlainWords:
    """The words of a source by split; with a saved `codec` its words, otherwise those that training has `least` times
    or more, the most frequent ones."""
    found = prepare(source, config.updated({"tokens": "word", "vocabulary": MOST}))
    spaced = found.codecs["text"]
    if not isinstance(spaced, WordCodec):
        raise DataError(f"{found.facts['source']}: word vectors are learned from text, and this data is numbers")
    plain = [cut(word, case) for word in spaced.words]
    if codec is None:
        codec = _fitted(plain, found.sections["train"], spaced, config, least)
    ids = [UNKNOWN] * len(SPECIALS) + [int(codec.encode(words)[0]) if words else UNKNOWN for words in plain]
    id_of = np.array(ids, np.int32)  # [V] of the codec with spaces
    texts = {split: _text(section, id_of) for split, section in found.sections.items()}
    counts = np.bincount(texts["train"].words, minlength=codec.size)
    for split, text in texts.items():
        if len(text.words) < 2:
            raise DataError(
                f"{found.facts['source']}: the {split} split has fewer than two words that are known; give more text, "
                f"or a smaller {option('min_count')}"
            )
    return PlainWords(texts, codec, counts, found)


def _fitted(
    plain: list[list[str]], train: Examples, spaced: WordCodec, config: DataConfig, least: int
) -> WordListCodec:
    counts: dict[str, int] = {}
    seen = np.bincount(train.values(TARGET), minlength=spaced.size)[len(SPECIALS) :]
    for words, n in zip(plain, seen.tolist()):
        for word in words:
            counts[word] = counts.get(word, 0) + n
    kept = _most_frequent(counts, least, config.vocabulary - len(SPECIALS))
    if not kept:
        raise DataError(
            f"no word occurs {least} times or more in the training split; give more text, or a smaller "
            f"{option('min_count')}"
        )
    return WordListCodec(kept)


def _most_frequent(counts: Mapping[str, int], least: int, room: int) -> list[str]:
    found = sorted((word for word, n in counts.items() if n >= max(least, 1)), key=lambda word: (-counts[word], word))
    return found[: max(room, 0)]


def _text(section: Examples, id_of: NDArray[np.int32]) -> Text:
    """The words that are known; others are left out, and what stands beside them comes closer."""
    words = id_of[section.values(TARGET)]
    lines = np.repeat(np.arange(section.n_examples, dtype=np.int32), section.lengths(TARGET))
    known = words != UNKNOWN
    return Text(words[known], lines[known])


def read_all(source: Any, config: DataConfig, case: Case, codec: WordListCodec) -> Text:
    """The whole of another source, in the words of a saved run."""
    opened = open_source(source, config.updated({"part": None}))
    texts = opened.pieces() if opened.is_stream else (example.text for example in opened.examples())
    found = [codec.encode(cut(text, case)) for text in texts]
    words = np.concatenate([*found, np.empty(0, np.int64)]).astype(np.int32)
    numbers = [0] * len(found) if opened.is_stream else range(len(found))
    lines = np.repeat(np.array(numbers, np.int32), [len(each) for each in found])
    known = words != UNKNOWN
    return Text(words[known], lines[known])
