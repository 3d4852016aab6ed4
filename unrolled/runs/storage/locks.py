"""Who may write in a directory: one writer of a manifest at a time, one process that trains a run or compares models.

The locks are those of the system (flock), so a kill gives them back; where a system or a file system has none, nobody
is refused. A process that trains or compares holds `.lock` inside the directory, which is removed at the end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unrolled.core.errors import UsageError
from unrolled.runs.storage import atomic

LOCK = ".lock"
AGAIN = 0.1  # seconds between two looks at a lock that is waited for


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """One writer at a time, among processes and threads, as far as the file system can promise it."""
    descriptor = None
    with suppress(ImportError, OSError):  # no such lock on this system or file system
        import fcntl

        descriptor = os.open(directory, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)  # also gives the lock back


@contextmanager
def in_use(directory: Path) -> Iterator[None]:
    """Train or compare in a directory, which is made if need be, as the only process that does."""
    atomic.make_directory(directory)
    place = directory / LOCK
    try:
        descriptor = _take(place)
    except BlockingIOError:
        raise UsageError(f"{directory} is in use by another process: wait for it, or stop it first") from None
    except OSError as error:
        raise atomic.cannot_write(place, 0, error) from error
    try:
        yield
    finally:
        with suppress(OSError):
            place.unlink(missing_ok=True)  # before it is given back, for then it may be that of another process
        os.close(descriptor)


def is_idle(directory: Path) -> bool:
    """Whether no process trains or compares in a directory; the lock of one that was killed is removed."""
    if not (directory / LOCK).exists():
        return True
    try:
        descriptor = _take(directory / LOCK)
    except BlockingIOError:
        return False
    except OSError:  # it cannot be written to
        return True
    with suppress(OSError):
        (directory / LOCK).unlink()
    os.close(descriptor)
    return True


def wait_until_idle(directory: Path, seconds: float) -> None:
    """Wait for a process that is about to leave a directory, but not for ever."""
    until = time.monotonic() + seconds
    while not is_idle(directory) and time.monotonic() < until:
        time.sleep(AGAIN)


def _take(place: Path) -> int:
    """A descriptor that holds the lock; BlockingIOError where another process has it."""
    while True:
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            _lock(descriptor)
            found = os.fstat(descriptor)
            with suppress(FileNotFoundError):
                if os.path.samestat(found, os.stat(place)):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # it was removed by its last holder just now: take the new one


def _lock(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # a file system without locks
        return
