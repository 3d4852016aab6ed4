"""A place on another machine that does runs, one after the other, for an engine that can call its methods.

It keeps a process like those of a comparison on one machine (worker.py). Where the directory of the comparison is
shared, that process writes there; where it is not, into a folder of its own, whose runs are carried back in parcels.
"""

from __future__ import annotations

import os
import socket
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import unrolled
from unrolled.comparison.engine import Worker
from unrolled.comparison.parcels import Parcel, pack, unpack
from unrolled.comparison.worker import ENDS, Event
from unrolled.core.errors import DataError
from unrolled.core.front import Reader, speak_to

WAIT = 1.0  # seconds in which it waits for something to tell


class Heard(NamedTuple):
    """What happened since it was last asked, and the run as it is where that is to be carried."""

    events: list[Event]
    parcel: Parcel = {}


class Runner:
    """Does the runs that it is given."""

    def __init__(self, threads: int, folder: str, mark: str, reader: Reader, current: str) -> None:
        """`current` is the current folder of the process that gives orders: names of files in them begin there."""
        speak_to(reader)
        if os.path.isdir(current):
            os.chdir(current)
        self.threads, self.folder = threads, folder
        self.shared = (Path(folder) / mark).is_file()
        self.own = None if self.shared else tempfile.TemporaryDirectory(prefix="unrolled-")
        self.heard_of: SimpleQueue[tuple[Worker, Event | None]] = SimpleQueue()
        self.worker: Worker | None = None
        self.run, self.carried = "", ""

    def facts(self) -> dict[str, Any]:
        """What the process that gives orders must know."""
        return {"host": socket.gethostname(), "shared": self.shared, "unrolled": unrolled.__version__}

    def begin(self, order: Event, parcel: Parcel, now: float) -> Heard:
        """Do a run; `now` is the time by the clock of the process that orders it, which may differ from ours."""
        if self.own is not None:
            unpack(Path(self.own.name), parcel)
            order = moved(order, self.folder, self.own.name)
        if order.get("budget"):
            deadline = order["budget"]["deadline"] + time.time() - now
            order = {**order, "budget": {**order["budget"], "deadline": deadline}}
        if self.worker is None or self.worker.process.poll() is not None:
            if self.worker is not None:
                self.worker.close()
            self.worker = Worker(self.threads, self.heard_of)
        self.run, self.carried = order["folder"], ""
        self.worker.begin(order)
        return Heard([])

    def heard(self) -> Heard:
        """Wait a while for events of the run."""
        events: list[Event] = []
        try:
            worker, event = self.heard_of.get(timeout=WAIT)
            while True:
                if worker is self.worker:  # not one before it, which ended while it had nothing to do
                    events.append(self._dead() if event is None else event)
                worker, event = self.heard_of.get_nowait()
        except Empty:
            pass
        if self.own is None:
            return Heard(events)
        if any(event["event"] in ENDS for event in events):
            return Heard(events, pack(Path(self.own.name), [self.run]))
        with suppress(DataError):  # it is being written: the next checkpoint will do
            if self._has_new_checkpoint():
                return Heard(events, pack(Path(self.own.name), [self.run]))
        return Heard(events)

    def stop(self) -> None:
        """Save the run and leave."""
        if self.worker is not None:
            self.worker.process.terminate()

    def close(self) -> None:
        """End."""
        if self.worker is not None:
            self.worker.close()
        if self.own is not None:
            self.own.cleanup()

    def _dead(self) -> Event:
        assert self.worker is not None
        return {"event": "stopped"} if self.worker.process.returncode == 75 else self.worker.why_dead()

    def _has_new_checkpoint(self) -> bool:
        assert self.own is not None
        place = Path(self.own.name) / self.run / "checkpoints" / "latest"
        now = str(place.stat().st_mtime_ns) if place.exists() else ""
        changed, self.carried = now != self.carried, now
        return changed


def moved(order: Event, folder: str, to: str) -> Event:
    """An order for runs below another folder.

    >>> moved({"out": "c/gru-0", "members": ["c/a"], "candidates": None, "data": "c.txt"}, "c", "/tmp/x")
    {'out': '/tmp/x/gru-0', 'members': ['/tmp/x/a'], 'candidates': None, 'data': 'c.txt'}
    """

    def there(path: str) -> str:
        return str(Path(to) / Path(path).relative_to(folder))

    found = order.get("candidates")
    if found:
        runs, folds = [there(run) for run in found["runs"]], [[there(run) for run in fold] for fold in found["folds"]]
        found = {**found, "runs": runs, "folds": folds}
    members = [there(member) for member in order.get("members", ())]
    return {**order, "out": there(order["out"]), "members": members, "candidates": found}


def needed(order: Event, folder: str) -> list[str]:
    """The folders of the runs that an order reads, and its own."""
    found = order.get("candidates") or {"runs": [], "folds": []}
    paths = [order["out"], *order.get("members", ()), *found["runs"], *(run for fold in found["folds"] for run in fold)]
    return list(dict.fromkeys(Path(path).relative_to(folder).as_posix() for path in paths))
