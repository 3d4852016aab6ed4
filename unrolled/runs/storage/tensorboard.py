"""Scalars for TensorBoard: event files beside metrics.jsonl, which stays the record.

They are appended by ourselves, because the writer that TensorBoard brings along does so in a thread of its own, where a
full disk goes unnoticed. Its parts are imported when the first number is written, because that takes a while.
"""

from __future__ import annotations

import io
import os
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unrolled.runs.storage import atomic

VERSION = "brain.Event:2"  # of the format


class Events:
    """A writer of named numbers by step; opened again in the same directory, it continues the curves.

    `note` keeps numbers in memory, so that a step of training does not wait for a file; `flush` writes them.
    """

    def __init__(self, directory: str | Path) -> None:
        self.path = Path(directory)
        self._resumed_at: int | None = None
        self._file: Path | None = None
        self._kept: list[tuple[int, float, Mapping[str, float]]] = []  # step, time of day, numbers

    def resume(self, step: int) -> None:
        """Say that the run resumes after `step`: later events, of a killed run or of this one, are hidden."""
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
            self._write(kept)

    def close(self) -> None:
        """Write what is left; numbers after this open a new file."""
        self.flush()
        if self._file is not None:
            self._file, self._resumed_at = None, None

    def _write(self, kept: list[tuple[int, float, Mapping[str, float]]]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about packages that tensorboard itself brings along
            from tensorboard.compat.proto.event_pb2 import Event
            from tensorboard.compat.proto.summary_pb2 import Summary

        events = [] if self._file is not None else self._begin(kept[0][0])
        for step, moment, values in kept:
            for name, value in values.items():
                summary = Summary(value=[Summary.Value(tag=name, simple_value=float(value))])
                events.append(Event(wall_time=moment, step=step, summary=summary))
        assert self._file is not None
        atomic.append(self._file, _records(events))

    def _begin(self, step: int) -> list[Any]:
        """Choose a file that is new, and the events that begin it."""
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog

        atomic.make_directory(self.path)
        while any(f".{int(time.time())}." in entry.name for entry in self.path.iterdir()):
            time.sleep(0.05)  # files are read in the order of their names, which tell whole seconds
        purge = None if self._resumed_at is None else self._resumed_at + 1
        if purge is None and any(self.path.iterdir()):
            purge = step
        now = time.time()
        self._file = self.path / f"events.out.tfevents.{int(now)}.unrolled.{os.getpid()}"
        events = [Event(wall_time=now, file_version=VERSION)]
        if purge is not None:
            events.append(Event(wall_time=now, step=purge, session_log=SessionLog(status=SessionLog.START)))
        return events


def _records(events: list[Any]) -> bytes:
    """Events as the file holds them: length, its checksum, the event, its checksum."""
    from tensorboard.summary.writer.record_writer import RecordWriter

    whole = io.BytesIO()
    writer = RecordWriter(whole)
    for event in events:
        writer.write(event.SerializeToString())
    return whole.getvalue()
