"""Scalars for TensorBoard: event files beside metrics.jsonl, which stays the record.

torch's writer is imported when the first number is written, for that takes a while.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from unrolled.runs import atomic


class Events:
    """A writer of named numbers by step; opened again in the same directory, it continues the curves.

    `note` keeps numbers in memory, so that a step of training does not wait for a file; `flush` writes them.
    """

    def __init__(self, directory: str | Path) -> None:
        self.path = Path(directory)
        self._resumed_at: int | None = None
        self._writer: Any = None
        self._kept: list[tuple[int, float, Mapping[str, float]]] = []  # step, time of day, numbers

    def resume(self, step: int) -> None:
        """Say that the run goes on after `step`: later events, of a killed run or of this one, are hidden."""
        self._kept = [kept for kept in self._kept if kept[0] <= step]
        self.close()
        self._resumed_at = step

    def note(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers of one step, to be written with the next ones."""
        self._kept.append((step, time.time(), values))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers of one step; a later kill loses none of them."""
        self.note(step, values)
        self.flush()

    def flush(self) -> None:
        """Write all that was noted."""
        if self._kept:
            kept, self._kept = self._kept, []
            self._attempt(lambda: self._write(kept))

    def close(self) -> None:
        """Write what is left; numbers after this open a new file."""
        self.flush()
        if self._writer is not None:
            writer, self._writer, self._resumed_at = self._writer, None, None
            self._attempt(writer.close)

    def _write(self, kept: list[tuple[int, float, Mapping[str, float]]]) -> None:
        if self._writer is None:
            self._writer = self._open(kept[0][0])
        for step, moment, values in kept:
            for name, value in values.items():
                self._writer.add_scalar(name, float(value), step, walltime=moment)
        self._writer.flush()

    def _open(self, step: int) -> Any:
        atomic.make_directory(self.path)
        while any(f".{int(time.time())}." in entry.name for entry in self.path.iterdir()):
            time.sleep(0.05)  # files are read in the order of their names, which tell whole seconds
        purge = None if self._resumed_at is None else self._resumed_at + 1
        if purge is None and any(self.path.iterdir()):
            purge = step
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about packages that tensorboard itself brings along
            from torch.utils.tensorboard import SummaryWriter

            return SummaryWriter(log_dir=str(self.path), purge_step=purge)

    def _attempt(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except OSError as error:
            raise atomic.cannot_write(self.path, 0, error) from error
