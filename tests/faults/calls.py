"""Counts the file calls of a process that change something, and disturbs one of them.

Counted are, below the roots of the trial: opening for writing, write, fsync, truncate, rename, link, mkdir, rmdir and
unlink. Python tells of most of them through its audit hooks; os.write and os.fsync are wrapped. The k-th call can end
the process (`kill`; of a write the first half is written before), or fail for want of room (`full`). Or every call
leaves a copy of what a kill there would leave (`copy`), so that one process shows them all.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import stat
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import unrolled

CHANGES = {
    "os.rename": (0, 2), "os.remove": (0, 1), "os.mkdir": (0, 2), "os.rmdir": (0, 1),
    "os.link": (1, 3), "os.symlink": (1, 2), "os.truncate": (0, None),
}  # fmt: skip
"""Audit events: where the path stands among the arguments, and where the folder it is relative to (a descriptor)."""
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
OWN = (
    sys.prefix,
    sys.base_prefix,
    os.path.realpath(sys.prefix),
    str(Path(unrolled.__file__).parent),
    str(Path(__file__).parents[1]),
    "/proc/",
    "/sys/",
    "/dev/urandom",
)


@dataclass(frozen=True)
class Fault:
    """What happens at the `at`-th file call, counted from 1; `full`: at every later call that needs room too.

    `place`: in the process of the command, or in the first of the processes that it begins (tests/faults/workers.py).
    `copies`: where a copy of all roots is made at every call, with the call's number as its name.
    """

    kind: Literal["kill", "full", "copy"]
    at: int = 1
    place: Literal["command", "worker"] = "command"
    copies: str = ""


class Calls:
    """The file calls of this process below the roots."""

    def __init__(self, fault: Fault | None, roots: Sequence[str], told: int) -> None:
        self.fault, self.roots, self.told = fault, [os.path.realpath(root) for root in roots], told
        self.count, self.seen, self.open, self.place = 0, set[str](), True, "command"
        self.write, self.fsync = os.write, os.fsync

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit event. An exception raised here is raised by the call itself."""
        if not self.open:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, int):
                return
            whole = _whole(path, None)
            if whole not in self.seen and not whole.startswith(OWN):
                self.seen.add(whole)
                self._tell(json.dumps(whole))
            if flags & WRITES and self._mine(whole):
                self._call("open", room=bool(flags & os.O_CREAT))
        elif event in CHANGES:
            where, folder = CHANGES[event]
            whole = _whole(arguments[where], None if folder is None else arguments[folder])
            if self._mine(whole):
                self._call(event, room=event in ("os.mkdir", "os.link", "os.symlink"))

    def _call(self, name: str, room: bool, half: Callable[[], int] = lambda: 0) -> int:
        """Before a call; how much of it was done here."""
        self.count += 1
        self._tell(f"{self.place} {name}")
        if self.fault is None or self.fault.place != self.place or self.count < self.fault.at:
            return 0
        if self.fault.kind == "copy":
            done = half()
            self._copy(self.fault.copies)
            return done
        if self.fault.kind == "kill":
            half()
            os.kill(os.getpid(), signal.SIGKILL)
        elif room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return 0

    def _copy(self, copies: str) -> None:
        """What a kill here would leave, apart from locks, which end with a process."""
        self.open = False
        try:
            shutil.copytree(self.roots[0], os.path.join(copies, str(self.count)), symlinks=True)
        finally:
            self.open = True

    def _mine(self, path: str) -> bool:
        return any(path == root or path.startswith(root + os.sep) for root in self.roots)

    def _mine_open(self, descriptor: int) -> bool:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        return self._mine(os.readlink(f"/proc/self/fd/{descriptor}").removesuffix(" (deleted)"))

    def on_write(self, descriptor: int, data: Any, /) -> int:
        if not self.open or not self._mine_open(descriptor):
            return self.write(descriptor, data)
        rest = memoryview(data).cast("B")
        done = self._call("write", room=True, half=lambda: self.write(descriptor, rest[: len(rest) // 2]))
        return done + self.write(descriptor, rest[done:])

    def on_fsync(self, descriptor: int, /) -> None:
        if self.open and self._mine_open(descriptor):
            self._call("fsync", room=True)
        self.fsync(descriptor)

    def _tell(self, line: str) -> None:
        self.write(self.told, (line + "\n").encode("utf-8", "surrogateescape"))

    def begin_worker(self) -> None:
        """This process was forked to be a worker: it counts for itself."""
        self.count, self.place = 0, "worker"

    def close(self, more: dict[str, float]) -> None:
        """Stop counting, and tell what else is known."""
        self.open = False
        self._tell(json.dumps(more))


def disturb(fault: Fault | None, roots: Sequence[str], told: int) -> Calls:
    """Count from now on in this process; the counts go line by line to the descriptor `told`."""
    calls = Calls(fault, roots, told)
    os.write, os.fsync = calls.on_write, calls.on_fsync  # type: ignore[assignment]
    sys.addaudithook(calls.hear)
    return calls


def _whole(path: Any, folder: Any) -> str:
    """The absolute path of an argument."""
    name = os.fsdecode(path) if not isinstance(path, int) else os.readlink(f"/proc/self/fd/{path}")
    if isinstance(folder, int) and folder >= 0 and not os.path.isabs(name):
        name = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), name)
    return os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(name))), os.path.basename(name))
