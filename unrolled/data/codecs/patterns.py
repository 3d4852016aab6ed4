"""Patterns as vectors: images, rows of numbers or bits, lines of text, each turned into d numbers and back.

| pattern | numbers |
|---|---|
| bits: two different values, or values cut at a threshold | -1 and +1 |
| numbers | as they are, or each pattern with mean 0 and standard deviation 1 |
| text | the number of each letter in the alphabet of all texts, as -1 and +1; short texts end with blanks |
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.core.opening import JSON, json_text, parse_json, read_text
from unrolled.core.outside import write_new
from unrolled.data.files.cell_values import as_numbers, shown

FILE = "patterns.json"
Scaling = Literal["none", "pattern"]
Vector = NDArray[np.float32]


@dataclass(frozen=True)
class PatternCodec:
    """Patterns of one shape [T, D], or of texts with at most T letters, D bits each."""

    shape: tuple[int, int]
    alphabet: str | None = None
    """the letters of texts; None: numbers"""
    values: tuple[float, float] | None = None
    """of bits, what -1 and +1 stand for; None: no bits"""
    threshold: float = 0.0
    """what is above it is +1"""
    scaling: Scaling = "none"

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def are_bits(self) -> bool:
        return self.alphabet is not None or self.values is not None

    def encode(self, value: Any, place: str) -> Vector:
        """A pattern as numbers [d]."""
        if self.alphabet is not None:
            return self._letters(value, place)
        x = as_numbers(value, place).astype(np.float64, copy=False)
        if x.shape != self.shape:
            wanted, found = (" x ".join(map(str, each)) for each in (self.shape, x.shape))
            raise DataError(
                f"{place}: found a pattern of {found} numbers, but the first has {wanted}; all need one size"
            )
        if self.values is not None:
            return np.where(x > self.threshold, 1.0, -1.0).astype(np.float32).ravel()
        return x.astype(np.float32).ravel()

    def keys(self, x: Vector) -> Vector:
        """Vectors [n, d] as they are compared."""
        if self.scaling == "none" or self.are_bits:
            return x
        centred = x - x.mean(1, keepdims=True)
        std = centred.std(1, keepdims=True)
        return (centred / np.where(std > 0, std, 1.0)).astype(np.float32)

    def decode(self, x: Any) -> Any:
        """Numbers [d] as a pattern [T, D], or a text."""
        values = np.asarray(x, np.float64).reshape(self.shape)
        if self.alphabet is not None:
            numbers = (values > 0) @ (1 << np.arange(self.shape[1]))
            return "".join(self.alphabet[n - 1] if 0 < n <= len(self.alphabet) else " " for n in numbers).rstrip()
        return values if self.values is None else np.where(values > 0, self.values[1], self.values[0])

    def _letters(self, text: Any, place: str) -> Vector:
        assert self.alphabet is not None
        if not isinstance(text, str):
            raise DataError(f"{place}: found {shown(text)}, expected text")
        if len(text) > self.shape[0]:
            raise DataError(f"{place}: found {len(text)} letters, but the longest stored text has {self.shape[0]}")
        if other := next((letter for letter in text if letter not in self.alphabet), None):
            raise DataError(f"{place}: the letter {shown(other)} is in none of the stored texts")
        numbers = np.zeros(self.shape[0], np.int64)
        numbers[: len(text)] = [self.alphabet.index(letter) + 1 for letter in text]
        bits = numbers[:, None] >> np.arange(self.shape[1]) & 1  # [T, D]
        return np.where(bits, 1.0, -1.0).astype(np.float32).ravel()

    def to_json(self) -> str:
        return json_text(asdict(self)) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """From what `to_json` gave; ValueError, KeyError or TypeError where that is damaged."""
        told = parse_json(text, "the codec of patterns")
        T, D = (int(each) for each in told["shape"])
        values = None if told["values"] is None else (float(told["values"][0]), float(told["values"][1]))
        if not (0 < T * D <= 1 << 24) or told["scaling"] not in ("none", "pattern"):
            raise ValueError("its sizes are not valid")
        alphabet = told["alphabet"] if told["alphabet"] is None else str(told["alphabet"])
        if alphabet is not None and len(alphabet) >= 1 << D:
            raise ValueError("its alphabet is too large")
        return cls((T, D), alphabet, values, float(told["threshold"]), told["scaling"])

    def save(self, directory: Path) -> None:
        write_new(directory / FILE, self.to_json().encode())

    @classmethod
    def load(cls, directory: Path) -> Self:
        path = directory / FILE
        text = read_text(path, JSON, within=directory)
        try:
            return cls.from_json(text)
        except (DataError, ValueError, KeyError, TypeError, IndexError, json.JSONDecodeError) as error:
            raise DataError(f"{path}: damaged, or not written by unrolled ({error}); restore the file") from None


def codec_of_texts(texts: Sequence[str]) -> PatternCodec:
    """For texts: as many letters as the longest has, as many bits as their alphabet needs."""
    alphabet = "".join(sorted({letter for text in texts for letter in text}))
    return PatternCodec((max(map(len, texts)), max(1, len(alphabet).bit_length())), alphabet)


def two_values(arrays: Iterable[NDArray[Any]]) -> tuple[float, float] | None:
    """The two different numbers of which all arrays consist; None: there are more, or fewer."""
    found: set[float] = set()
    for array in arrays:
        found |= set(np.unique(array).tolist())
        if len(found) > 2:
            return None
    return (min(found), max(found)) if len(found) == 2 else None
