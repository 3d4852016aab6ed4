"""Text whose splits are given: a source for each, read as one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.core.errors import DataError
from unrolled.data.codecs.text import Codec
from unrolled.data.config import DataConfig
from unrolled.data.files.tables import Example
from unrolled.data.given_splits import opened_alike, require_one_for_each, settled, sources_by_split
from unrolled.data.sources.text import TextSource, open_source
from unrolled.data.split import row_key


class SplitText(TextSource):
    """The sources of the splits one after the other; rows are numbered through."""

    def __init__(self, parts: Mapping[str, TextSource]) -> None:
        first = next(iter(parts.values()))
        super().__init__(first.examples_are, first.chosen)
        for part, each in parts.items():
            if (each.is_stream, each.numbers) != (first.is_stream, first.numbers):
                raise DataError(
                    f"{each.name}: the {part} split holds {_kind(each)}, but {first.name} holds "
                    f"{_kind(first)}; give the same kind"
                )
        self.name, self.numbers, self.column = first.name, first.numbers, first.column
        self.files = [file for each in parts.values() for file in each.files]
        self._parts = parts
        self._before: dict[str, int] = {}  # rows before those of each split that a pass has come to

    def by_split(self) -> Mapping[str, TextSource]:
        return self._parts

    def examples(self) -> Iterator[Example]:
        last = 0
        for part, source in self._parts.items():
            self._before[part] = before = last
            for example in source.examples():
                last = before + example.number
                side = settled(example.part, part, self._parts, source.place(example.number))
                yield example._replace(number=last, part=side)

    def place(self, number: int) -> str:
        part = max((before, i, name) for i, (name, before) in enumerate(self._before.items()) if before < number)[2]
        return self._parts[part].place(number - self._before[part])

    def digest(self) -> str:
        found = [f"{part} {source.digest()}" for part, source in self._parts.items()]
        return hashlib.sha256("\n".join(found).encode()).hexdigest()

    def leave_out_copies(self) -> None:
        for source in self._parts.values():
            source.leave_out_copies()

    def notes(self) -> list[str]:
        return [note for source in self._parts.values() for note in source.notes()]


def _kind(source: TextSource) -> str:
    return f"{'numbers' if source.numbers else 'text'} as {'a stream' if source.is_stream else 'separate examples'}"


def open_text(source: Any, config: DataConfig) -> TextSource:
    """Whatever was handed over to train on; given splits are kept, and read by the columns of the training data."""
    sources = sources_by_split(source)
    if sources is None:
        if isinstance(source, str | PathLike) and os.path.isdir(source):
            require_one_for_each(Path(source))
        return open_source(source, config)

    def other(each: Any, first: TextSource) -> TextSource:
        as_there = {"examples": first.examples_are, "column": first.column or config.column, "part": None}
        return open_source(each, config.updated(as_there))

    return SplitText(opened_alike(sources, lambda each: open_source(each, config), other))


# ---- what is shown of it

N_TOKENS = 24
N_CHARACTERS = 200


def first_texts(source: Any, config: DataConfig, codec: Codec, n: int) -> list[dict[str, Any]]:
    """The beginning of a stream, or the first n examples, as they are read and as tokens."""
    opened = next(iter(open_text(source, config).by_split().values()))
    first: list[tuple[Any, str | None, str | None]]
    if opened.is_stream:
        first = [(piece[:N_CHARACTERS], None, None) for piece in islice(opened.pieces(), 1)]
    else:
        first = [
            (each.text[:N_CHARACTERS], each.label, opened.place(each.number)) for each in islice(opened.examples(), n)
        ]
    return [
        {
            "text": text if isinstance(text, str) else " ".join(map(str, text)),
            "class": label,
            "place": place,
            "tokens": [codec.name(token) for token in codec.encode(text)[:N_TOKENS]],
        }
        for text, label, place in first
    ]


# ---- what is in training too

LONG = 30  # characters of a line that is not likely to be there twice by chance


def lines_again(train: TextSource, given: Mapping[str, TextSource]) -> dict[str, str]:
    """By split, a sentence on long lines of its stream that are in the training stream too."""
    if not given or train.numbers:
        return {}
    seen = np.unique(np.fromiter(_long_lines(train), np.uint64))
    found = {part: np.fromiter(_long_lines(source), np.uint64) for part, source in given.items()}
    again = {part: int(np.isin(keys, seen).sum()) for part, keys in found.items()}
    return {
        part: f"{n} of {len(found[part])} lines of {part} with {LONG} or more characters are in train too"
        for part, n in again.items()
        if n
    }


def _long_lines(source: TextSource) -> Iterator[int]:
    rest = ""
    for piece in source.pieces():
        *lines, rest = f"{rest}{piece}".split("\n")
        yield from (row_key(line.strip(), None, 0) for line in lines if len(line.strip()) >= LONG)
    if len(rest.strip()) >= LONG:
        yield row_key(rest.strip(), None, 0)
