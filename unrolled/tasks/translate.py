"""Translate: write a target text for a source text: languages, letters to sounds, dates to ISO, any string to string.

    C = - sum_t log p(y_t | y_1 .. y_{t-1}, source)                  source and target in words, letters, bytes or BPE

Every score stands beside copying the source and a word-by-word dictionary learned from the same pairs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from unrolled.core import task
from unrolled.core.errors import DataError, UsageError
from unrolled.core.front import option
from unrolled.core.spec import Asks, Ports, SourcePorts
from unrolled.data.codecs.text import Codec
from unrolled.data.collate import n_targets
from unrolled.data.config import DataConfig
from unrolled.data.files.in_memory import is_standard_input
from unrolled.data.files.live_chunks import live_chunks
from unrolled.data.look import Look
from unrolled.data.pairs import first_pairs
from unrolled.data.pairs_prepare import encode_pairs, is_joint, prepare_pairs
from unrolled.data.prepared import kept
from unrolled.data.reading import PairReading
from unrolled.data.sources.open_pairs import open_pairs
from unrolled.data.sources.pairs_files import sources_in, sources_of, table_of_pairs
from unrolled.data.sources.pairs_guess import guess_pairs
from unrolled.data.sources.rows_beside import rows_of
from unrolled.tasks import _written
from unrolled.tasks._counted import Counted
from unrolled.tasks._writing import AT_ONCE, given_in

ALIASES = ("translation", "seq2seq", "text-to-text", "transliterate", "summarise", "summarize")

SOURCE = "source"  # the folder of the sources' codec, where it is not that of the targets


class Config(_written.Config):
    pairs: PairReading = PairReading()


class Task(_written.WrittenTask):
    TYPED = True  # a source, or a source and a target with a tab between

    config: Config

    def __init__(self, config: Config, data: DataConfig) -> None:
        super().__init__(config, data)
        self.source_codec: Codec
        self.reading: PairReading = config.pairs
        self.shared = False

    # ---- data

    @classmethod
    def guess(cls, look: Look, given: Mapping[str, Any]) -> task.Guess | None:
        return guess_pairs(look, given)

    def prepare(self, source: Any) -> None:
        if self.data.column is not None or self.data.condition is not None:
            two = f"{option('source_column')} and {option('target_column')}"
            raise UsageError(f"pairs have two columns: give {two} instead of {option('column')}")
        codecs = (self.source_codec, self.codec) if self.has_codecs else (None, None)
        reading = self.config.pairs.with_part(self.data.part)
        make = lambda: prepare_pairs(open_pairs(source, reading), self.data, codecs)  # noqa: E731
        found = kept(source, self.asked(reading, codecs), make)
        self.take(found)
        self.shared, self.reading = found.told["shared"], PairReading.parse(found.told["reading"])
        self.source_codec = self.codec if self.shared else found.codecs["source"]

    def first(self, source: Any, n: int) -> list[dict[str, Any]]:
        return first_pairs(open_pairs(source, self.reading), n)

    def save_codec(self, directory: Path) -> None:
        super().save_codec(directory)
        if not self.shared:
            self.source_codec.save(directory / SOURCE)

    def load_codec(self, directory: Path) -> None:
        super().load_codec(directory)
        self.shared = not (directory / SOURCE).exists()
        self.source_codec = self.codec if self.shared else Codec.load(directory / SOURCE)

    def vocabularies(self) -> dict[str, task.Vocabulary]:
        return {"encoder.embedding": task.Vocabulary(self.source_codec), **super().vocabularies()}

    def reuse(self, vocabularies: Mapping[str, task.Vocabulary]) -> None:
        """Both or none, as fits the settings: one vocabulary for both sides, or one for each."""
        found = [
            vocabularies[part].codec for part in ("encoder.embedding", "decoder.embedding") if part in vocabularies
        ]
        cut_alike = len(found) == 2 and all(
            isinstance(codec, Codec) and codec.kind == self.data.tokens for codec in found
        )
        if cut_alike and (found[0] is found[1]) == is_joint(self.data, self.config.pairs):
            (self.source_codec, self.codec), self.has_codecs = found, True

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "reading": self.reading.model_dump(mode="json")}

    def recall(self, facts: Mapping[str, Any]) -> None:
        super().recall(facts)
        self.reading = PairReading.parse(facts["reading"]).updated({"target_file": None})  # never by a saved name

    # ---- the model

    def asks(self) -> Asks:
        return Asks(self.ACCEPTS, "next", "tokens", "tokens", "tokens")

    def ports(self) -> Ports:
        source = SourcePorts(self.source_codec.size, shared=self.shared)
        return Ports(self.codec.size, self.codec.size, source=source)

    def solve(self, model: Any, limit: int | None = None) -> task.Fitted:
        section, codecs = self.sections["train"], (self.source_codec, self.codec)
        return task.fitted(section, n_targets(section), limit, lambda some: model.solve(Counted(some, codecs)))

    def baselines(self) -> list[task.Baseline]:
        return [task.Baseline("copy", "copy-source", {}), task.Baseline("word by word", "dictionary", {})]

    # ---- examples

    def measure_on(self, source: Any) -> Callable[[Any], dict[str, float]]:
        codecs = self.source_codec, self.codec
        section, longest = encode_pairs(open_pairs(source, self.reading), codecs, self.data)

        def measure(model: Any) -> dict[str, float]:
            self.check_lengths(model, longest)
            return self.measure(model, section)

        return measure

    def encode_source(self, value: Any, place: str) -> np.ndarray:
        text = self._text(value)
        try:
            ids = self.source_codec.encode(text)
        except DataError as error:
            raise DataError(f"{place}: {error}") from None
        if not len(ids):
            raise DataError(f"{place}: the source text is empty; fill it in")
        return ids.astype(np.int32)

    def is_nothing(self, value: Any) -> bool:
        return not str(value).strip()

    def shown_source(self, value: Any) -> Any:
        return self._text(value)

    def _text(self, value: Any) -> str:
        return str(value).lower() if self.reading.lower else str(value)

    def source_names(self, source: Tensor) -> list[str]:
        return [self.source_codec.name(int(token)) for token in source]

    def rows_in(self, path: Path) -> task.Rows | None:
        return rows_of(table_of_pairs(path, self.reading))

    def read(self, source: Any) -> Iterator[list[task.Given]]:
        """Lines, the source column of a table, or bare texts."""
        if is_standard_input(source):
            return given_in((line.rstrip("\r\n") for line in sys.stdin), live=True)
        if isinstance(source, str | PathLike):
            found = sources_in(Path(source), self.reading)
            return live_chunks(
                (task.Given(text, number=n, place=f"line {n}") for n, text in found), AT_ONCE, live=False
            )
        return given_in(sources_of(source, self.reading), "example")
