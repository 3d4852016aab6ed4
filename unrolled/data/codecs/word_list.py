"""Words that were cut already, such as those of a tagged corpus: a number for each, and perhaps its letters.

    encode(["The", "dog"])                    [T]           with letters = 0
    [word, letter 1, .., letter L]            [T, 1 + L]    with letters = L; EMPTY after the last letter

Words seen fewer than `least` times in the training split are <unknown>, so that <unknown> is learned; letters of a word
longer than L are those of its first half and of its end, where English keeps its inflections.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.core.opening import JSON, json_text, parse_json, read_text
from unrolled.core.outside import write_new
from unrolled.core.tokens import EMPTY, SPECIALS, UNKNOWN

FILE = "words.json"


class WordListCodec:
    """A table of words and, for letters, a table of characters; ids 0 to 3 are the special ones of every codec."""

    def __init__(self, words: Sequence[str], characters: str = "", letters: int = 0) -> None:
        if len(set(words)) < len(words) or len(set(characters)) < len(characters) or letters < 0:
            raise ValueError("a word or a character occurs twice")
        self.words, self.characters, self.letters = list(words), characters, letters
        self._id_of = {word: i for i, word in enumerate(words, start=len(SPECIALS))}
        self._letter_of = {character: i for i, character in enumerate(characters, start=len(SPECIALS))}
        self._spelled: dict[str, NDArray[np.int64]] = {}

    @classmethod
    def fit(
        cls, sentences: Iterable[Sequence[str]], vocabulary: int, least: int = 1, letters: int = 0
    ) -> WordListCodec:
        """The most frequent words, ties in the order of Unicode; every character of the training split."""
        counts = Counter(word for sentence in sentences for word in sentence)
        kept = sorted((word for word, n in counts.items() if n >= least), key=lambda word: (-counts[word], word))
        characters = "".join(sorted({c for word in counts for c in word})) if letters else ""
        return cls(kept[: max(vocabulary - len(SPECIALS), 0)], characters, letters)

    specials: ClassVar[tuple[str, ...]] = SPECIALS

    @property
    def size(self) -> int:
        """Different ids of words, special ones included."""
        return len(SPECIALS) + len(self.words)

    @property
    def n_letters(self) -> int:
        """Different ids of letters, special ones included."""
        return len(SPECIALS) + len(self.characters)

    @property
    def width(self) -> int:
        """Ids for each word."""
        return 1 + self.letters

    def encode(self, words: Sequence[str]) -> NDArray[np.int64]:
        """[T], or [T, 1 + L]."""
        ids = np.array([self._id_of.get(word, UNKNOWN) for word in words], np.int64)  # [T]
        if not self.letters:
            return ids
        return np.concatenate([ids[:, None], np.stack([self._letters(word) for word in words])], axis=1)

    def _letters(self, word: str) -> NDArray[np.int64]:
        if word not in self._spelled:
            if len(self._spelled) > 1 << 17:
                self._spelled.clear()
            ids = [self._letter_of.get(character, UNKNOWN) for character in word]
            if len(ids) > self.letters:
                half = self.letters // 2
                ids = ids[:half] + ids[len(ids) - (self.letters - half) :]
            self._spelled[word] = np.array(ids + [EMPTY] * (self.letters - len(ids)), np.int64)
        return self._spelled[word]

    def name(self, token: int) -> str:
        return SPECIALS[token] if token < len(SPECIALS) else self.words[token - len(SPECIALS)]

    def spelling(self) -> list[bytes]:
        """The bytes that each word stands for, with a space before it; special ones stand for none."""
        return [b""] * len(SPECIALS) + [f" {word}".encode() for word in self.words]

    def unknown(self, words: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(word for word in words if word not in self._id_of))

    def to_json(self) -> str:
        values: dict[str, Any] = {"words": self.words, "characters": self.characters, "letters": self.letters}
        return json_text(values) + "\n"

    @staticmethod
    def from_json(text: str) -> WordListCodec:
        values = parse_json(text, "the list of words")
        return WordListCodec(values["words"], values["characters"], int(values["letters"]))

    def save(self, directory: str | Path) -> None:
        write_new(Path(directory) / FILE, self.to_json().encode())

    @staticmethod
    def load(directory: str | Path) -> WordListCodec:
        path = Path(directory) / FILE
        text = read_text(path, JSON, within=Path(directory))
        try:
            return WordListCodec.from_json(text)
        except (DataError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(f"{path}: damaged, or not written by unrolled ({error}); restore the file") from None
