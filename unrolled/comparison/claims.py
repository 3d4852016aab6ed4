"""Which process does which run of a planned comparison, where many may, on several machines that share its directory.

    .claims/gru-0.1         a claim on the run gru-0: who has it; made by a hard link, so that one process makes it
    .claims/gru-0.1.beat    a number that changes every few seconds, as long as its owner is there
    .claims/gru-0.1.end     how it ended: done, failed, given back, ...
    .claims/gru-0.2         the next claim on it, after the first was given back or its owner was gone

No file is locked and no clocks are compared: a claim has expired when this process has seen the same number for the
time of a lease by its own clock, and has looked regularly at the end of it: after a sleep of both, the owner may be
about to beat. Who continues a run makes the next claim, which exactly one process can; an owner that was only asleep
finds it there and ends its worker at once. Where the file system has locks, a run whose process is alive is not taken
over at all.
"""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field

from unrolled.core.config import Record
from unrolled.core.errors import CannotWrite, OutOfMemory, UnrolledError
from unrolled.core.opening import read_bytes, read_json
from unrolled.runs.results import RESULT
from unrolled.runs.storage import atomic
from unrolled.runs.storage.formats import json_text
from unrolled.runs.storage.locks import is_idle

PLACE = ".claims"
BEATS = 9  # within a lease
AWAKE = 3 / BEATS  # of a lease: who has not looked for longer was asleep, and then looks on for so long
SHORT = 2.0  # seconds between two looks in which nobody was asleep, whatever the lease
DEATHS = 3  # of processes with one run that came no further: another would die of it too
SMALL = 4096  # bytes of a beat
_NAME = re.compile(r"(.+)\.(\d{1,9})(\.beat|\.end)?")

Event = dict[str, Any]


class Claim(Record):
    """Who does a run."""

    host: str
    process: int
    deaths: int = Field(0, ge=0)
    """How many processes before it ended with this run where it is now."""
    at: str = ""
    """The checkpoint that the run is continued from."""


class Ended(Record):
    """How a claim ended: the last event of the run, or that it was given back."""

    event: Literal["done", "failed", "untrained", "none better", "stopped", "killed"]
    why: str = ""
    code: int = UnrolledError.exit_code
    needs: float = 0.0

    @property
    def is_final(self) -> bool:
        """Whether the run is not to be claimed again."""
        return self.event not in ("stopped", "killed")


class Found(NamedTuple):
    """The last claim on a run."""

    number: int
    ended: Ended | None = None


class _Watched(NamedTuple):
    """What was read last of an open claim."""

    beat: bytes
    since: float
    """When this process first read it."""
    awake: float
    """Since when it has looked regularly."""
    looked: float


class Claims:
    """The claims on the runs of a comparison, as this process sees them."""

    def __init__(self, folder: Path, lease: float) -> None:
        self.folder, self.place, self.lease = folder, folder / PLACE, lease
        self.watched: dict[str, _Watched] = {}
        self.silent: dict[str, int] = {}  # claims that have expired, of processes that still have the lock of their run
        atomic.make_directory(self.place)

    def look(self) -> dict[str, Found]:
        """The last claim on every run that was ever claimed."""
        numbers: dict[str, int] = {}
        for name in os.listdir(self.place):
            if (found := _NAME.fullmatch(name)) and found[3] is None:
                numbers[found[1]] = max(int(found[2]), numbers.get(found[1], 0))
        return {run: Found(number, self._end(run, number)) for run, number in numbers.items()}

    def outcome(self, run: str, last: Found | None) -> Ended | None:
        """How a run ended for good; None: it has not."""
        if (self.folder / run / RESULT).exists():
            return Ended(event="done")
        ended = None if last is None else last.ended
        return ended if ended is not None and ended.is_final else None

    def is_free(self, run: str, last: Found | None) -> bool:
        """Whether a run that has not ended may be claimed."""
        if last is None or last.ended is not None:
            return True
        if not self._has_expired(f"{run}.{last.number}"):
            return False
        if not (free := is_idle(self.folder / run)):
            self.silent[run] = last.number
        return free

    def take(self, run: str, last: Found | None) -> Held | None:
        """A claim on a run; None where another process was quicker."""
        at, deaths = _checkpoint(self.folder / run), 0
        if last is not None and (last.ended is None or last.ended.event == "killed"):
            before = self._claim(run, last.number)
            deaths = 1 + (before.deaths if before is not None and before.at == at else 0)
        number = 1 if last is None else last.number + 1
        own = Claim(host=socket.gethostname(), process=os.getpid(), deaths=deaths, at=at)
        path = self.place / f"{run}.{number}"
        made = atomic.write_once(path, json_text(own.model_dump(mode="json"), str(path)).encode())
        return Held(path, own, self.place / f"{run}.{number + 1}", self.lease / BEATS) if made else None

    def owner(self, run: str, last: Found) -> str:
        """Where the process is that has a run."""
        claim = self._claim(run, last.number)
        return "another process" if claim is None else f"process {claim.process} on {claim.host}"

    def _claim(self, run: str, number: int) -> Claim | None:
        with suppress(UnrolledError):
            return Claim.parse(read_json(self.place / f"{run}.{number}", within=self.folder))
        return None

    def _end(self, run: str, number: int) -> Ended | None:
        path = self.place / f"{run}.{number}.end"
        if not path.exists():
            return None
        with suppress(UnrolledError):
            return Ended.parse(read_json(path, within=self.folder))
        return Ended(event="stopped")  # it cannot be read: the run is done again

    def _has_expired(self, name: str) -> bool:
        path, now = self.place / f"{name}.beat", time.monotonic()
        before = self.watched.get(name, _Watched(b"", now, now, now))
        beat = before.beat
        with suppress(UnrolledError):
            beat = read_bytes(path, SMALL, within=self.folder) if path.exists() else b""
        awake = before.awake if now - before.looked <= max(SHORT, AWAKE * self.lease) else now
        since = before.since if beat == before.beat else now
        self.watched[name] = _Watched(beat, since, awake, now)
        return now - since > self.lease and now - awake > AWAKE * self.lease


class Held:
    """A claim of this process; within it, others see that it is alive."""

    def __init__(self, path: Path, claim: Claim, successor: Path, pause: float) -> None:
        self.path, self.claim, self.successor, self.pause = path, claim, successor, pause
        self.lost = False
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def beating(self, when_lost: Callable[[], None]) -> Self:
        """Beat from now on; `when_lost` is called where another process has taken the run over."""
        self._thread = threading.Thread(target=self._beat, args=(when_lost,), daemon=True)
        return self

    def __enter__(self) -> Self:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def is_hopeless(self) -> bool:
        """Whether so many processes died of this run that the next one would."""
        return self.claim.deaths >= DEATHS

    def end(self, ended: Ended) -> None:
        """Tell how the run ended, or that it was given back."""
        path = self.path.with_name(f"{self.path.name}.end")
        atomic.write_once(path, json_text(ended.model_dump(mode="json"), str(path)).encode())

    def _beat(self, when_lost: Callable[[], None]) -> None:
        count = 0
        while not self._over.is_set():
            with suppress(OSError):  # the next beat may be possible
                if self.successor.exists():
                    self.lost = True
                    when_lost()
                    return
                _put(self.path.with_name(f"{self.path.name}.beat"), b"%d" % count)
            count += 1
            self._over.wait(self.pause)


HOPELESS = Ended(
    event="failed",
    why=f"its process ended {DEATHS} times without progress, most likely because it ran out of memory",
    code=OutOfMemory.exit_code,
)


def kept(event: Event) -> Ended:
    """What is kept of the last event of a run: of one that was killed, only that, because it is tried again."""
    if event["event"] == "failed" and event["code"] == OutOfMemory.exit_code:
        return Ended(event="killed", why=event["why"])
    if event["event"] == "failed" and event["code"] == CannotWrite.exit_code:
        return Ended(event="stopped")
    return Ended.among(event)


def _checkpoint(run: Path) -> str:
    """What names the last checkpoint of a run; nothing is read by it."""
    with suppress(UnrolledError, KeyError, TypeError):
        return str(read_json(run / "checkpoints" / "latest", within=run)["checkpoint"])
    return ""


def _put(path: Path, data: bytes) -> None:
    """Write a few bytes in place: the next process that opens the file reads them, on network file systems too."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)
