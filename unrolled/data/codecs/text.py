"""Codecs: text becomes token ids and ids become text again.

A codec is a table from id to the bytes it stands for; `decode` joins the bytes, so a text of known tokens comes back
exactly. Ids 0 to 3 are special and the same in every codec; no text, whatever it says, is ever encoded to them
(the literal word "<start>" is seven characters), except that what was not seen in training becomes <unknown>.
"""

# ruff: noqa: ARG003 (every kind is fitted and restored by one signature, whether it needs all of it or not)
from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError, UsageError
from unrolled.core.opening import JSON, json_text, parse_json, read_text
from unrolled.core.outside import write_new
from unrolled.core.tokens import BYTE_VALUES, CLASS, GAPS, MASK, SEPARATOR, SPECIALS, UNKNOWN
from unrolled.data.config import DataConfig
from unrolled.data.files.cell_values import check_text

FILE = "tokenizer.json"

Ids = NDArray[np.int64]


class TextStream:
    """Emits text token by token; bytes that do not yet make a whole character wait for the next token."""

    def __init__(self, table: Sequence[bytes]) -> None:
        self._table = table
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        return self._decoder.decode(self._table[token])

    def close(self) -> str:
        """What was held back, as a replacement mark; empty after whole characters."""
        return self._decoder.decode(b"", final=True)


class Codec:
    """The base: everything but the way text is cut. Subclasses give `fit`, `_encode` and what to save."""

    kind: ClassVar[str]

    def __init__(self, table: Iterable[bytes], extra: Sequence[str] = ()) -> None:
        self.specials = (*SPECIALS, *extra)
        if len(set(self.specials)) < len(self.specials) or not all(re.fullmatch(r"<\w+>", s) for s in self.specials):
            raise UsageError(
                f"special tokens must be different words in angle brackets, found {', '.join(self.specials)}"
            )
        self._table = [b""] * len(self.specials) + list(table)

    @classmethod
    def fit(cls, texts: Iterable[Any], config: DataConfig, extra: Sequence[str] = ()) -> Codec:
        """Learn the tokens of `config.tokens` from training texts; `extra` special tokens follow the first four."""
        return kinds()[config.tokens].fit(texts, config, extra)

    @property
    def size(self) -> int:
        """How many different ids there are, special ones included."""
        return len(self._table)

    def special(self, name: str) -> int | None:
        """The id of a special token; None where nobody asked for it when the codec was fitted.

        >>> ByteCodec(("<mask>",)).special("<mask>"), ByteCodec().special("<mask>")
        (4, None)
        """
        return self.specials.index(name) if name in self.specials else None

    def cuts_as(self, tokens: str) -> bool:
        """Whether it cuts texts in the way that `--tokens` names."""
        return self.kind == tokens

    def framed(self, ids: Ids) -> Ids:
        """Between <class> and <separator> where the codec has these, as what was pre-trained with them reads a text."""
        first, last = self.special(CLASS), self.special(SEPARATOR)
        return ids if first is None or last is None else np.array([first, *ids, last], np.int64)

    def with_gaps(self, text: str) -> Ids:
        """The ids of a text in which `[MASK]` or `<mask>` stands for <mask>, with the space before it.

        >>> ByteCodec(("<mask>",)).with_gaps("[MASK]!").tolist()
        [4, 38]
        """
        gap = self.special(MASK)
        if gap is None:
            return self.encode(text)
        pieces = re.split("|".join(rf" ?{re.escape(each)}" for each in GAPS), text)
        found = [self.encode(pieces[0])]
        for piece in pieces[1:]:
            found += [np.array([gap], np.int64), self.encode(piece)]
        return np.concatenate(found)

    def encode(self, text: str) -> Ids:
        """The ids of a text, without <start> and <stop>."""
        check_text(text)
        return self._encode(text)

    def encode_all(self, texts: Sequence[str]) -> tuple[Ids, list[int]]:
        """The ids of many texts after each other, and how many each has."""
        found = [self.encode(text) for text in texts]
        return np.concatenate([*found, np.empty(0, np.int64)]), [len(ids) for ids in found]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of some ids; special tokens are left out, broken UTF-8 becomes a replacement mark."""
        return b"".join(self._table[int(token)] for token in ids).decode("utf-8", "replace")

    def spelling(self) -> list[bytes]:
        """The bytes that each token stands for; special ones for none."""
        return list(self._table)

    def stream(self) -> TextStream:
        return TextStream(self._table)

    def name(self, token: int) -> str:
        """A token for the eye: spaces and control characters visible.

        >>> ByteCodec().name(4 + 10), ByteCodec().name(2), ByteCodec().name(4 + 0xE9)
        ('\\\\n', '<start>', '\\\\xe9')
        """
        if token < len(self.specials):
            return self.specials[token]
        text = self._table[token].decode("utf-8", "backslashreplace").replace(" ", "␣")
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

    def unknown(self, text: str) -> list[str]:
        """The different parts of a text that would become <unknown>, in order of appearance."""
        return []

    def known(self, text: str) -> bool:
        return not self.unknown(text)

    def byte_lengths(self, text: str) -> NDArray[np.int64]:
        """How many bytes of the text each of its tokens stands for, unknown ones too."""
        return np.array([len(self._table[token]) for token in self._encode(text)], np.int64)

    def save(self, directory: str | Path) -> None:
        write_new(Path(directory) / FILE, self.to_json().encode())

    @staticmethod
    def load(directory: str | Path) -> Codec:
        """Read `tokenizer.json`; a damaged file is a DataError."""
        path = Path(directory) / FILE
        text = read_text(path, JSON, within=Path(directory))
        try:
            return Codec.from_json(text)
        except (DataError, ValueError, KeyError, TypeError, AttributeError, RecursionError, UsageError) as error:
            raise DataError(
                f"{path}: damaged, or not a tokenizer that unrolled wrote ({error}); restore the file"
            ) from None

    def to_json(self) -> str:
        values = {"format": "unrolled", "tokens": self.kind, "specials": self.specials, **self._values()}
        return json_text(values) + "\n"

    @staticmethod
    def from_json(text: str) -> Codec:
        values = parse_json(text, "the tokenizer")
        if values.get("format") != "unrolled":
            return kinds()["bpe"]._restore({"text": text}, ())
        specials = tuple(values["specials"])
        if specials[: len(SPECIALS)] != SPECIALS:
            raise ValueError("the special tokens are not the first ids")
        return kinds()[values["tokens"]]._restore(values, specials[len(SPECIALS) :])

    @classmethod
    def _restore(cls, values: Mapping[str, Any], extra: Sequence[str]) -> Codec:
        raise NotImplementedError

    def _values(self) -> dict[str, Any]:
        return {}

    def _encode(self, text: str) -> Ids:
        raise NotImplementedError


class ByteCodec(Codec):
    """One token per byte of UTF-8: any text is known, and nothing is learned."""

    kind = "byte"

    def __init__(self, extra: Sequence[str] = ()) -> None:
        super().__init__((bytes([value]) for value in range(BYTE_VALUES)), extra)

    @classmethod
    def fit(cls, texts: Iterable[Any], config: DataConfig, extra: Sequence[str] = ()) -> Codec:
        return cls(extra)

    @classmethod
    def _restore(cls, values: Mapping[str, Any], extra: Sequence[str]) -> Codec:
        return cls(extra)

    def _encode(self, text: str) -> Ids:
        return np.frombuffer(text.encode("utf-8"), np.uint8).astype(np.int64) + len(self.specials)


class CharCodec(Codec):
    """One token per character (code point) of the training text, in the order of Unicode."""

    kind = "char"

    def __init__(self, characters: str, extra: Sequence[str] = ()) -> None:
        points = code_points(characters)
        if (points[1:] <= points[:-1]).any():
            raise ValueError("the characters are not sorted")
        super().__init__((character.encode("utf-8") for character in characters), extra)
        self.characters = characters
        self._id_of = np.full(int(points[-1]) + 2 if len(points) else 1, UNKNOWN, np.int64)  # the last entry: unseen
        self._id_of[points] = np.arange(len(points)) + len(self.specials)

    @classmethod
    def fit(cls, texts: Iterable[Any], config: DataConfig, extra: Sequence[str] = ()) -> Codec:
        seen = np.zeros(0x110000, bool)
        for text in texts:
            seen[code_points(text)] = True
        return cls("".join(map(chr, np.flatnonzero(seen))), extra)

    @classmethod
    def _restore(cls, values: Mapping[str, Any], extra: Sequence[str]) -> Codec:
        return cls(values["characters"], extra)

    def _values(self) -> dict[str, Any]:
        return {"characters": self.characters}

    def _encode(self, text: str) -> Ids:
        return self._id_of[np.minimum(code_points(text), len(self._id_of) - 1)]

    def encode_all(self, texts: Sequence[str]) -> tuple[Ids, list[int]]:
        return self.encode("".join(texts)), [len(text) for text in texts]

    def unknown(self, text: str) -> list[str]:
        return list(dict.fromkeys(c for c, token in zip(text, self.encode(text)) if token == UNKNOWN))

    def byte_lengths(self, text: str) -> NDArray[np.int64]:
        points = code_points(text)
        return 1 + (points > 0x7F).astype(np.int64) + (points > 0x7FF) + (points > 0xFFFF)


def code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le"), np.uint32)


class NumberCodec(Codec):
    """One token per whole number, for data that comes as numbers already (quantised sound, pixels, notes).

    As text the numbers are written with a space between them.
    """

    kind = "number"

    def __init__(self, numbers: Sequence[int], extra: Sequence[str] = ()) -> None:
        super().__init__((f"{number} ".encode() for number in numbers), extra)
        self.numbers = np.array(numbers, np.int64)
        if (np.diff(self.numbers) <= 0).any():
            raise ValueError("the numbers are not sorted")

    @classmethod
    def fit(cls, texts: Iterable[Any], config: DataConfig, extra: Sequence[str] = ()) -> Codec:
        seen = np.empty(0, np.int64)
        for numbers in texts:
            seen = np.union1d(seen, numbers)
        return cls(seen.tolist(), extra)

    @classmethod
    def _restore(cls, values: Mapping[str, Any], extra: Sequence[str]) -> Codec:
        return cls(values["numbers"], extra)

    def _values(self) -> dict[str, Any]:
        return {"numbers": self.numbers.tolist()}

    def encode(self, text: str | NDArray[Any]) -> Ids:
        """The ids of an array of whole numbers, or of numbers written with spaces between them."""
        if isinstance(text, str):
            words = text.split()
            try:
                text = np.array([int(word) for word in words], np.int64)
            except (ValueError, OverflowError):
                raise DataError(f"'{text[:40]}' is not a list of integers such as '3 1 4'") from None
        place = np.searchsorted(self.numbers, text)
        found = self.numbers[np.minimum(place, len(self.numbers) - 1)] == text if len(self.numbers) else place < 0
        return np.where(found, place + len(self.specials), UNKNOWN).astype(np.int64)

    def decode(self, ids: Iterable[int]) -> str:
        return super().decode(ids).rstrip(" ")

    def unknown(self, text: str) -> list[str]:
        return list(dict.fromkeys(word for word, token in zip(text.split(), self.encode(text)) if token == UNKNOWN))

    def byte_lengths(self, text: str | NDArray[Any]) -> NDArray[np.int64]:
        return np.ones(len(self.encode(text)), np.int64)


def kinds() -> dict[str, type[Codec]]:
    """Every codec by the word that `--tokens` has for it."""
    from unrolled.data.codecs.hub import HubCodec
    from unrolled.data.codecs.words import BpeCodec, WordCodec

    return {cls.kind: cls for cls in (ByteCodec, CharCodec, WordCodec, BpeCodec, NumberCodec, HubCodec)}
