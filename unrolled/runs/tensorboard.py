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
    """A writer of named numbers by step; opened again in the same directory, it continues the curves."""

    def __init__(self, directory: str | Path) -> None:
        self.path = Path(directory)
        self._resumed_at: int | None = None
        self._writer: Any = None

    def resume(self, step: int) -> None:
        """Say before the first number that the run goes on after `step`: later events of the killed run are hidden."""
        self._resumed_at = step

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers of one step; a later kill loses none of them."""

        def write() -> None:
            if self._writer is None:
                self._writer = self._open(step)
            for name, value in values.items():
                self._writer.add_scalar(name, float(value), step)
            self._writer.flush()

        self._attempt(write)

    def close(self) -> None:
        """Write what is left; numbers after this open a new file."""
        if self._writer is not None:
            writer, self._writer, self._resumed_at = self._writer, None, None
            self._attempt(writer.close)

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
