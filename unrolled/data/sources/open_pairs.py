"""Whatever a user hands over as pairs of a source and a target text: opened by what it is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from unrolled.core.errors import Misused, listed, some
from unrolled.data.builtin_sets import BUILTIN, asked
from unrolled.data.files.text_file import named_path
from unrolled.data.given_splits import PARTS, sources_by_split
from unrolled.data.pairs import Pair, PairSource, open_splits
from unrolled.data.reading import PairReading
from unrolled.data.sources import pairs_files as files


def open_pairs(source: Any, reading: PairReading) -> PairSource:
    """Whatever was handed over as a source of pairs."""
    if isinstance(source, str) and source.startswith(BUILTIN):
        return _open_builtin(source, reading)
    if (sources := sources_by_split(source)) is not None:
        return open_splits(source, sources, reading, open_pairs)
    if isinstance(source, Mapping):
        raise Misused(
            f"expected a mapping of pairs with the names {listed(PARTS)}, found {some(map(str, source)) or 'nothing'}"
        )
    if isinstance(source, str | os.PathLike):
        return files.open_path(named_path(source), reading)
    if isinstance(source, list | tuple) and source and not isinstance(source[0], Mapping):
        return _open_tuples(source, reading)
    return files.open_rows(source, reading)


def _open_builtin(source: str, reading: PairReading) -> PairSource:
    found = asked(source, "pairs")

    def read() -> Iterator[Pair]:
        return (Pair(first, second, f"{source}, {place}", *more) for first, second, place, *more in found.read())

    return PairSource(source, read, reading)


def _open_tuples(rows: Any, reading: PairReading) -> PairSource:
    """A list of (source, target)."""
    if isinstance(rows[0], str) or not hasattr(rows[0], "__len__"):
        raise Misused("expected a list of (source, target) or of dicts, found single values")

    def read() -> Iterator[Pair]:
        for number, row in enumerate(rows, start=1):
            sides = [*([row] if isinstance(row, str) else row), None, None]
            yield Pair(sides[0], sides[1], f"the list, row {number}")

    return PairSource("the list", read, reading)
