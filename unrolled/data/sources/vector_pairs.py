"""Pairs whose source is not a text: an image, a sound or strokes of a pen, as vectors [S, D]; the target is a text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unrolled.core.errors import DataError
from unrolled.data.codecs.vectors import VectorCodec
from unrolled.data.config import DataConfig
from unrolled.data.files.cell_values import check_text
from unrolled.data.formats import ending_of
from unrolled.data.labelled import check_series
from unrolled.data.pairs import Pair, PairSource


@dataclass
class VectorPairs(PairSource):
    """Vectors and texts that can be read again and again."""

    channels: int | None = None
    """numbers of a pixel, where a vector is a row of them"""

    def fit_source(self, sources: Iterable[Any], config: DataConfig) -> VectorCodec:
        return VectorCodec.fit(sources, self.channels, self.name)

    def __iter__(self) -> Iterator[Pair]:
        first: Pair | None = None
        for pair in self.read():
            why = self._trouble(pair, first)
            if why is not None:
                self.skip(why)
                continue
            first = first or pair
            target = pair.target.strip()
            yield pair._replace(target=target.lower() if self.reading.lower else target)
        if first is None:
            raise DataError(f"{self.name}: there are no usable examples in it, so there is nothing to learn from")

    def _trouble(self, pair: Pair, first: Pair | None) -> str | None:
        """Why a pair cannot be used; None: it can."""
        if not isinstance(pair.target, str) or not pair.target.strip():
            return f"{pair.place}: the text is {'empty' if isinstance(pair.target, str) else 'missing'}"
        try:
            check_text(pair.target)
            check_series(pair.source, pair.place)
        except DataError as error:
            sentence = str(error)
            return sentence if sentence.startswith(pair.place) else f"{pair.place}: {sentence}"
        wide, usual = pair.source.shape[1], wide_of(first or pair)
        if wide != usual:
            return f"{pair.place}: has {wide} numbers per step, but the first one has {usual}; all need the same"
        return None


def wide_of(pair: Pair) -> int:
    return int(pair.source.shape[1])


def sources_alone(source: str, endings: Collection[str], pairs: Callable[[], Iterable[Any]]) -> Iterator[Any]:
    """The files of a folder with these endings, such a file, or the sources of data with targets, in their order."""
    path = Path(source)
    if path.is_dir() and (files := sorted(file for file in path.rglob("*") if ending_of(file) in endings)):
        return map(str, files)
    return iter([str(path)]) if ending_of(path) in endings else (pair.source for pair in pairs())
