"""Pairs of a source and a target text, from whatever a user has.

| data | a pair is |
|---|---|
| .csv .jsonl .json .parquet, a data frame, a list of dicts | the cells of two columns |
| .tsv .txt | a line: source, a tab, target; quotes are letters like others |
| two line-aligned files (`train.de --target-file train.en`) | line n of both |
| a folder of train.de, train.en, val.de, .. | the same, in the parts that the names say |
| [(source, target), ..] in Python | one of them |
| {"train": .., "valid": .., "test": ..} | any of these, in the parts that the names say |

Packed files (.gz, .bz2, .xz) are read as they are. A source is read as often as needed, always in the same order, and
every pair is checked on the way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from unrolled.core.errors import DataError
from unrolled.core.front import option
from unrolled.data.codecs.text import Codec
from unrolled.data.config import DataConfig
from unrolled.data.files.cell_values import check_text, in_brief
from unrolled.data.given_splits import ALL, opened_alike, settled
from unrolled.data.reading import PairReading


class Pair(NamedTuple):
    """One example; `part` is train, valid or test where the data says so, and otherwise all."""

    source: Any
    target: Any
    place: str
    part: str = ALL
    kind: str = ""
    """What sort of held-out example it is, where metrics are also computed by sort."""


@dataclass
class PairSource:
    """Pairs that can be read again and again: `for pair in source`; all of them have two texts."""

    name: str
    read: Callable[[], Iterator[Pair]]
    reading: PairReading
    """the settings with the columns that were chosen: a saved run reads other files with these"""
    notes: dict[str, None] = field(default_factory=dict)
    """what was chosen or left out while reading; complete after one pass"""
    skipped: dict[str, None] = field(default_factory=dict)
    """a sentence for each pair that was left out; complete after one pass"""

    def __iter__(self) -> Iterator[Pair]:
        found = False
        for pair in self.read():
            why = trouble(pair)
            if why is not None:
                self.skip(f"{pair.place}: {why}")
                continue
            found = True
            if self.reading.lower:
                pair = pair._replace(source=pair.source.lower(), target=pair.target.lower())
            yield pair
        if not found:
            raise DataError(f"{self.name}: there are no pairs of texts in it, so there is nothing to learn from")

    def fit_source(self, sources: Iterable[Any], config: DataConfig) -> Any:
        """The codec of sources, from those of the training split."""
        return Codec.fit(sources, config)

    def skip(self, sentence: str) -> None:
        """Leave a pair out where that was asked for, otherwise refuse it."""
        if not self.reading.skip_bad:
            raise DataError(f"{sentence}; fix it, or skip such pairs with {option('skip_bad', True)}")
        self.skipped[sentence] = None


Pairs = TypeVar("Pairs", bound=PairSource)


def trouble(pair: Pair) -> str | None:
    """Why a pair cannot be used; None: it can."""
    for side, text in (("source", pair.source), ("target", pair.target)):
        if text is None or (isinstance(text, float) and text != text):
            return f"the {side} is missing"
        if not isinstance(text, str):
            return f"the {side} is {str(text)[:20]!r}, not a text"
        if not text.strip():
            return f"the {side} is empty"
        try:
            check_text(text)
        except DataError as error:
            return f"of the {side}, {str(error).split(';')[0]}"
    return None


def open_splits(source: Any, sources: Mapping[str, Any], reading: Any, opener: Callable[[Any, Any], Pairs]) -> Pairs:
    """A source that gives its splits; those beside training are read by the columns found there."""
    as_there = {"part_column": None, "target_file": None}
    parts = opened_alike(sources, lambda each: opener(each, reading),
                         lambda each, first: opener(each, first.reading.updated(as_there)))  # fmt: skip
    return join_parts(parts, str(source) if isinstance(source, str | os.PathLike) else "the data")


def join_parts(parts: Mapping[str, Pairs], name: str) -> Pairs:
    """Sources that are a part each, as one."""
    if not parts:
        raise DataError(f"{name}: there is no train split in it")
    first = next(iter(parts.values()))
    whole = replace(first, name=name, read=lambda: read(), notes={}, skipped={})

    def read() -> Iterator[Pair]:
        for part, source in parts.items():
            for pair in source.read():
                yield pair._replace(part=settled(pair.part, part, parts, pair.place))
            whole.notes.update(source.notes)
            whole.skipped.update(source.skipped)

    return whole


def first_pairs(opened: PairSource, n: int) -> list[dict[str, Any]]:
    """The first pairs for people: what is read, what is to be written, where it is."""
    return [
        {"source": in_brief(each.source), "target": in_brief(each.target), "place": each.place}
        for each in islice(opened, n)
    ]
