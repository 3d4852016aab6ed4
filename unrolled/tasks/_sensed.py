"""What tasks share that write a text for something other than a text: an image, a sound, strokes of a pen."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from unrolled.core import task
from unrolled.core.errors import DataError, UsageError
from unrolled.core.front import option
from unrolled.core.spec import Asks, Ports, SourcePorts
from unrolled.data.codecs.text import Codec
from unrolled.data.codecs.vectors import VectorCodec
from unrolled.data.collate import n_targets
from unrolled.data.config import DataConfig
from unrolled.data.files.in_memory import is_standard_input, table_of, values_of
from unrolled.data.pairs import first_pairs
from unrolled.data.pairs_prepare import encode_pairs, prepare_pairs
from unrolled.data.prepared import kept
from unrolled.data.reading import PairReading
from unrolled.data.sources.rows_beside import rows_in
from unrolled.data.sources.vector_pairs import VectorPairs
from unrolled.tasks import _written
from unrolled.tasks._counted import Counted
from unrolled.tasks._writing import given_in


class SensedTask(_written.WrittenTask):
    """The base: sources are vectors [S, D], scaled by what training showed. A task adds how they are read."""

    READING: ClassVar[type[PairReading]]

    def __init__(self, config: _written.Config, data: DataConfig, reading: PairReading) -> None:
        super().__init__(config, data)
        self.source_codec: VectorCodec
        self.reading, self.asked_file = reading, reading.target_file
        self._offered: Codec | None = None

    def open(self, source: Any, reading: Any) -> VectorPairs:
        """Whatever a user hands over."""
        raise NotImplementedError

    def vectors_of(self, value: Any, place: str) -> np.ndarray:
        """One source as a user gives it, as it would be read from data: [S, D]."""
        raise NotImplementedError

    # ---- data

    @staticmethod
    def is_for_others(given: Mapping[str, Any]) -> bool:
        """Whether what is said of the data names columns that only other tasks have."""
        return any(given.get(name) for name in ("column", "target", "condition"))

    def prepare(self, source: Any) -> None:
        if self.data.column is not None or self.data.condition is not None:
            two = f"{option('source_column')} and {option('target_column')}"
            raise UsageError(f"this task has two columns: give {two} instead of {option('column')}")
        reading = self.reading.updated({"target_file": self.asked_file}).with_part(self.data.part)
        codecs = (self.source_codec, self.codec) if self.has_codecs else (None, self._offered)
        make = lambda: prepare_pairs(self.open(source, reading), self.data, codecs)  # noqa: E731
        found = kept(source, self.asked(reading, codecs), make)
        self.take(found)
        self.source_codec, self.reading = found.codecs["source"], self.READING.parse(found.told["reading"])

    def first(self, source: Any, n: int) -> list[dict[str, Any]]:
        return first_pairs(self.open(source, self.reading.updated({"target_file": self.asked_file})), n)

    def save_codec(self, directory: Path) -> None:
        super().save_codec(directory)
        self.source_codec.save(directory)

    def load_codec(self, directory: Path) -> None:
        super().load_codec(directory)
        self.source_codec = VectorCodec.load(directory)

    def reuse(self, vocabularies: Mapping[str, task.Vocabulary]) -> None:
        """What is written is written in the tokens of a saved run, where these are of the kind that is asked for."""
        found = vocabularies.get("decoder.embedding")
        codec = None if found is None else found.codec
        self._offered = codec if isinstance(codec, Codec) and codec.kind == self.data.tokens else None

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "reading": self.reading.model_dump(mode="json")}

    def recall(self, facts: Mapping[str, Any]) -> None:
        super().recall(facts)
        self.reading = self.READING.parse(facts["reading"]).updated({"target_file": None})  # never by a saved name

    # ---- the model

    def asks(self) -> Asks:
        return Asks(self.ACCEPTS, "next", "tokens", "numbers", "tokens")

    def ports(self) -> Ports:
        source = SourcePorts(0, d_in=self.source_codec.size)
        return Ports(self.codec.size, self.codec.size, source=source)

    def solve(self, model: Any, limit: int | None = None) -> task.Fitted:
        section, codecs = self.sections["train"], (self.source_codec, self.codec)
        return task.fitted(section, n_targets(section), limit, lambda some: model.solve(Counted(some, codecs)))

    def baselines(self) -> list[task.Baseline]:
        return [
            task.Baseline("most frequent text", "nearest-target", {"kept": "frequent"}),
            task.Baseline("text of the nearest", "nearest-target", {}),
        ]

    # ---- examples

    def read(self, source: Any) -> Iterator[list[task.Given]]:
        """Bare sources in a list, or those of data with texts or without."""
        if is_standard_input(source):
            return given_in(map(self.line, sys.stdin), live=True)
        if isinstance(source, str | Path):
            return given_in(self.sources_of(source))
        pairs = isinstance(source, Mapping | tuple) or table_of(source) is not None
        return given_in(self.sources_of(source) if pairs else values_of(source), "example")

    def rows_in(self, path: Path) -> task.Rows | None:
        return rows_in(path)

    def sources_of(self, source: Any) -> Iterator[Any]:
        """The sources of data with texts or without."""
        raise NotImplementedError

    def line(self, line: str) -> Any:
        """A source on a line of standard input: the name of a file."""
        return line.strip()

    def measure_on(self, source: Any) -> Callable[[Any], dict[str, float]]:
        codecs = self.source_codec, self.codec
        section, longest = encode_pairs(self.open(source, self.reading), codecs, self.data)

        def measure(model: Any) -> dict[str, float]:
            self.check_lengths(model, longest)
            return self.measure(model, section)

        return measure

    def encode_source(self, value: Any, place: str) -> np.ndarray:
        vectors = self.vectors_of(value, place)
        if vectors.ndim != 2 or vectors.shape[1] != self.source_codec.size:
            raise DataError(
                f"{place}: found vectors of shape {list(vectors.shape)}, expected [steps, "
                f"{self.source_codec.size}] as in training"
            )
        return self.source_codec.encode(vectors, place)
