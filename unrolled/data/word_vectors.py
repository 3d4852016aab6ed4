"""Words with a vector each: which are near each other, and files of them (data/files/vector_files.py).

cos(a, b) = a . b / (|a| |b|)
a is to b as c is to d:     d maximises cos(d, b/|b| - a/|a| + c/|c|)        (Mikolov et al. 2013, "3CosAdd")
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import UsageError
from unrolled.core.opening import shortened
from unrolled.data.files import vector_files

Numbers = NDArray[np.float32]
SIMILAR = 4  # spellings that are named where a word is not known


class WordVectors:
    """Words and their vectors [n, D]; of a word that comes twice the first counts.

    >>> found = WordVectors(["king", "queen", "mean"], np.array([[1.0, 0], [1, 1], [0, 1]]))
    >>> [(each["word"], round(each["cosine"], 3)) for each in found.neighbours("king")]
    [('queen', 0.707), ('mean', 0.0)]
    """

    def __init__(self, words: Sequence[str], vectors: Any) -> None:
        self.vectors: Numbers = np.asarray(vectors, np.float32)
        self.words = [*words]
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.words):
            shape = list(self.vectors.shape)
            raise UsageError(f"found {len(self.words)} words and vectors of the shape {shape}; give one row for each")
        self.row_of = {word: row for row, word in reversed([*enumerate(self.words)])}

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.row_of

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __getitem__(self, word: str) -> Numbers:
        found: Numbers = self.vectors[self.row(word)]
        return found

    def __repr__(self) -> str:
        return f"WordVectors({len(self):,} words, {self.width} numbers each)"

    @property
    def width(self) -> int:
        return int(self.vectors.shape[1])

    @classmethod
    def of(cls, names: Iterable[str], vectors: Any) -> WordVectors:
        """The rows of a table by name; rows without a name, and those whose name came before, are left out."""
        seen: dict[str, int] = {}
        for row, name in enumerate(names):
            if name and not any(letter.isspace() for letter in name):
                seen.setdefault(name, row)
        return cls([*seen], np.asarray(vectors, np.float32)[[*seen.values()]])

    @classmethod
    def read(cls, path: str | Path) -> WordVectors:
        """A file in the format of word2vec (text or binary) or of GloVe."""
        return cls(*vector_files.read(path))

    def save(self, path: str | Path, form: str | None = None) -> None:
        """Write a file: .bin is the binary format of word2vec, others its text format, or that of GloVe, without the
        first line, with form = glove."""
        vector_files.write(path, self.words, self.vectors, form)

    # ---- what is near what

    @cached_property
    def units(self) -> NDArray[np.float64]:
        """[n, D] vectors of length 1; one that is zero stays so."""
        vectors = self.vectors.astype(np.float64)
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(length > 0, length, 1.0)

    def row(self, word: str) -> int:
        """The row of a word; one that is not known is refused, with known words that are spelt alike."""
        if word in self.row_of:
            return self.row_of[word]
        alike = [each for each in self.row_of if each.casefold() == word.casefold()]
        letters = word[:60]
        alike += difflib.get_close_matches(letters, self._of_like_length(letters), n=SIMILAR, cutoff=0.6)
        named = ", ".join(f"'{shortened(each, 60)}'" for each in dict.fromkeys(alike[:SIMILAR]))
        hint = f"similar spellings: {named}" if named else f"none of the {len(self):,} known words is spelt like it"
        raise UsageError(f"there is no vector of '{shortened(word, 60)}'; {hint}")

    def _of_like_length(self, word: str) -> list[str]:
        return [each for each in self.row_of if abs(len(each) - len(word)) <= 2 + len(word) // 3]

    def similarity(self, a: str, b: str) -> float:
        """The cosine between two words."""
        return float(self.units[self.row(a)] @ self.units[self.row(b)])

    def neighbours(self, word: str, top: int = 10) -> list[dict[str, Any]]:
        """The words with the largest cosine to a word, the nearest first."""
        return self._near(self.units[self.row(word)], {self.row(word)}, top)

    def analogy(self, a: str, b: str, c: str, top: int = 5) -> list[dict[str, Any]]:
        """Words d such that a is to b as c is to d, the best first."""
        rows = [self.row(each) for each in (a, b, c)]
        there = self.units[rows[1]] - self.units[rows[0]] + self.units[rows[2]]
        length = float(np.linalg.norm(there))
        return self._near(there / length if length > 0 else there, set(rows), top)

    def _near(self, there: NDArray[np.float64], without: set[int], top: int) -> list[dict[str, Any]]:
        cosines = self.units @ there
        cosines[[*without]] = -np.inf
        best = np.argsort(-cosines, kind="stable")[: max(min(top, len(self) - len(without)), 0)]
        return [{"word": self.words[row], "cosine": float(cosines[row])} for row in best.tolist()]
