"""Vectors as a model reads them: each number brought to mean 0 and standard deviation 1 over the training split.

The pixels of an image share one mean and one scale for each channel, so that all places are alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.data.codecs.labels import SeriesScaler, fit_scaler, load_answers

FILE = "source.json"


class VectorCodec:
    """Sources [S, D] to and fro; they are kept as float16, three digits of a number of about one."""

    kind = "vectors"

    def __init__(self, scaler: SeriesScaler) -> None:
        self.scaler = scaler

    @classmethod
    def fit(cls, sources: Iterable[NDArray[Any]], channels: int | None, name: str) -> VectorCodec:
        """From training sources [S, D]; with `channels` each row is pixels of so many numbers."""
        width = 0

        def rows() -> Iterable[NDArray[Any]]:
            nonlocal width
            for source in sources:
                width = source.shape[1]
                yield source if channels is None else source.reshape(-1, channels)

        scaler = fit_scaler(SeriesScaler, rows(), name)
        times = 1 if channels is None else width // channels
        return cls(SeriesScaler(np.tile(scaler.mean, times), np.tile(scaler.std, times)))

    @property
    def size(self) -> int:
        """D."""
        return self.scaler.size

    def encode(self, source: NDArray[Any], place: str = "the source") -> NDArray[np.float16]:
        return self.scaler.encode(source, place).clip(-6e4, 6e4).astype(np.float16)

    def to_json(self) -> str:
        return self.scaler.to_json()

    def save(self, directory: str | Path) -> None:
        self.scaler.save(directory, FILE)

    @classmethod
    def load(cls, directory: str | Path) -> VectorCodec:
        return cls(load_answers(directory, FILE))  # type: ignore[arg-type]
