"""Scalars for TensorBoard: event files beside metrics.jsonl, which stays the record.

torch's writer is imported when the first one is made, for that takes a while.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from unrolled.runs import atomic


class Events:
    """A writer of named numbers by step.

    A resumed run gives `resumed_at`, the step it continues from: events after it, written before the kill, are hidden
    by TensorBoard, and a new event file continues the curves.
    """

    def __init__(self, directory: str | Path, resumed_at: int | None = None) -> None:
        self.path = Path(directory)
        atomic.make_directory(self.path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about packages that tensorboard itself brings along
            from torch.utils.tensorboard import SummaryWriter

            purge = None if resumed_at is None else resumed_at + 1
            self._writer: Any = self._written(lambda: SummaryWriter(log_dir=str(self.path), purge_step=purge))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers of one step; a kill later loses none of them."""

        def write() -> None:
            for name, value in values.items():
                self._writer.add_scalar(name, float(value), step)
            self._writer.flush()

        self._written(write)

    def close(self) -> None:
        """Write what is left; a second call does nothing."""
        self._written(self._writer.close)

    def _written(self, action: Any) -> Any:
        try:
            return action()
        except OSError as error:
            raise atomic.cannot_write(self.path, 0, error) from error

    def __enter__(self) -> Events:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
