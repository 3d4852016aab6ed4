"""Codecs that cut text into words, or into pieces learned from the training text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import UsageError
from unrolled.core.opening import parse_json
from unrolled.core.tokens import BYTE_VALUES, SPECIALS, UNKNOWN
from unrolled.data.codecs.text import Codec, Ids
from unrolled.data.config import DataConfig

WORD = re.compile(r" ?\w+(?:['’]\w+)*| ?[^\w\s]|\s")
MOST_COUNTED = 1_000_000  # different words that are counted at a time; rarer ones give way, so memory has a bound


class WordCodec(Codec):
    """One token per word, punctuation mark or white space; the joined tokens are the text.

    A word (letters, digits, inner apostrophes) or a mark takes the one space before it along, so that ordinary text
    costs one token a word: "The cat, too." is `The`, ` cat`, `,`, ` too`, `.`. Other white space is a token per
    character. The most frequent tokens of the training text are kept, ties in the order of Unicode.
    """

    kind = "word"

    def __init__(self, words: Sequence[str], extra: Sequence[str] = ()) -> None:
        super().__init__((word.encode("utf-8") for word in words), extra)
        self.words = list(words)
        self._id_of = {word: token for token, word in enumerate(words, start=len(self.specials))}
        if len(self._id_of) < len(words):
            raise ValueError("a word occurs twice in the vocabulary")

    @classmethod
    def fit(cls, texts: Iterable[Any], config: DataConfig, extra: Sequence[str] = ()) -> Codec:
        counts: Counter[str] = Counter()
        least = 0
        for text in texts:
            counts.update(WORD.findall(text))
            while len(counts) > MOST_COUNTED:
                least += 1
                counts = Counter({word: n for word, n in counts.items() if n > least})
        room = config.vocabulary - len(SPECIALS) - len(extra)
        return cls(sorted(counts, key=lambda word: (-counts[word], word))[: max(room, 0)], extra)

    @classmethod
    def _restore(cls, values: Mapping[str, Any], extra: Sequence[str]) -> Codec:
        return cls(values["words"], extra)

    def _values(self) -> dict[str, Any]:
        return {"words": self.words}

    def _encode(self, text: str) -> Ids:
        words = WORD.findall(text)
        return np.fromiter((self._id_of.get(word, UNKNOWN) for word in words), np.int64, len(words))

    def unknown(self, text: str) -> list[str]:
        return list(dict.fromkeys(word for word in WORD.findall(text) if word not in self._id_of))

    def byte_lengths(self, text: str) -> NDArray[np.int64]:
        return np.array([len(word.encode("utf-8")) for word in WORD.findall(text)], np.int64)


MOST_BPE_CHARACTERS = 50_000_000  # of training text from which the pairs are learned: bounds memory and time


class BpeCodec(Codec):
    """Byte-pair encoding (Sennrich et al. 2016) on bytes (Radford et al. 2019): any text is known.

    Trained with the tokenizers library; `tokenizer.json` is that library's own file with the ids used here. Of very
    long corpora the first 50 million characters of the training split are learned from.
    """

    kind = "bpe"

    def __init__(self, text: str) -> None:
        from tokenizers import Tokenizer

        values = parse_json(text, "the tokenizer")
        if values["model"]["type"] != "BPE" or values["pre_tokenizer"]["type"] != "ByteLevel" or values["normalizer"]:
            raise ValueError("not a byte-level BPE")
        specials = [token["content"] for token in values["added_tokens"]]
        if tuple(specials[: len(SPECIALS)]) != SPECIALS:
            raise ValueError("the special tokens are not the first ids")
        vocabulary = sorted(values["model"]["vocab"].items(), key=lambda item: item[1])
        if [token for _, token in vocabulary] != list(range(len(vocabulary))):
            raise ValueError("the ids are not 0, 1, 2, ...")
        byte_of = {character: value for value, character in enumerate(byte_characters())}
        words = [word for word, _ in vocabulary[len(specials) :]]
        super().__init__((bytes(byte_of[c] for c in word) for word in words), specials[len(SPECIALS) :])
        try:
            self._tokenizer = Tokenizer.from_str(text)
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(str(error)) from None
        self._tokenizer.encode_special_tokens = True  # "<start>" in a text is text; the file does not keep this

    @classmethod
    def fit(cls, texts: Iterable[Any], config: DataConfig, extra: Sequence[str] = ()) -> Codec:
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

        if config.vocabulary < BYTE_VALUES + len(SPECIALS) + len(extra):
            raise UsageError(
                f"vocabulary = {config.vocabulary} is too small for bpe with {len(extra)} more special tokens"
            )
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=config.vocabulary,
            min_frequency=2,
            special_tokens=[*SPECIALS, *extra],
            initial_alphabet=byte_characters(),
            show_progress=False,
        )
        tokenizer.train_from_iterator(_short_words(_first(texts, MOST_BPE_CHARACTERS)), trainer)
        return cls(tokenizer.to_str())

    @classmethod
    def _restore(cls, values: Mapping[str, Any], extra: Sequence[str]) -> Codec:  # noqa: ARG003  # in the text
        return cls(values["text"])

    def to_json(self) -> str:
        return self._tokenizer.to_str(pretty=False) + "\n"

    def _encode(self, text: str) -> Ids:
        return np.array(self._tokenizer.encode(text, add_special_tokens=False).ids, np.int64)


def byte_characters() -> list[str]:
    """The printable character that stands for each byte in a byte-level BPE file: itself, or one from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(value) if value in printable else chr(next(others)) for value in range(BYTE_VALUES)]


def _first(texts: Iterable[str], limit: int) -> Iterator[str]:
    for text in texts:
        yield text[:limit]
        limit -= len(text)
        if limit <= 0:
            return


def _short_words(texts: Iterable[str]) -> Iterator[str]:
    """Runs without a space cut at 1000 characters, for learning from one word of a million takes the square of it."""
    for text in texts:
        yield re.sub(r"(\S{1000})(?=\S)", r"\1 ", text)
