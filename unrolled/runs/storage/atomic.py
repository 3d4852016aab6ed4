"""Writing so that a reader, a kill or a full disk never meets half a file.

    temp file beside the target -> fsync -> rename over the target -> fsync of the directory

A rename within one directory is atomic, so at every moment the target is the old file or the new one, whole. What a
killed writer leaves behind carries its process number in the name, and the next writer sweeps it away. fsync is for
power cuts; in the block of `temporary` it is left out.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unrolled.core import outside
from unrolled.core.outside import cannot_write, require_replaceable
from unrolled.core.outside import temp_path as temp_path  # also for those who write here
from unrolled.runs.storage.formats import json_text

_TEMP_NAME = re.compile(r"^\..+\.tmp-(\d{1,10})-([0-9a-f]{8})-\d+$")
_DURABLE = ContextVar("durable", default=True)  # of this thread


@contextmanager
def temporary() -> Iterator[None]:
    """A block whose files are read and removed by this process, so that no power cut matters to them."""
    before = _DURABLE.set(False)
    try:
        yield
    finally:
        _DURABLE.reset(before)


@dataclass(frozen=True, slots=True)
class Seal:
    """What identifies the content of a file."""

    sha256: str
    size: int


def is_temp(name: str) -> bool:
    """Whether a file of this name is on its way to become another, or was left behind by a killed writer."""
    return _TEMP_NAME.match(name) is not None


def sync_directory(directory: Path) -> None:
    """Make renames in a directory survive a power cut."""
    if os.name != "posix" or not _DURABLE.get():
        return  # other systems cannot open a directory
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems have no such call
            raise
    finally:
        os.close(descriptor)


def store(path: Path, chunks: Iterable[Any], size: int | None, target: Path) -> Seal:
    """Write and fsync a new file of `size` bytes (None: of as many as come), on its way to become `target`.

    A failure leaves nothing. The file must be new: a link that somebody planted under its name is not followed.
    """
    digest, written = hashlib.sha256(), 0
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        try:
            for chunk in chunks:
                rest = memoryview(chunk).cast("B")
                digest.update(rest)
                written += len(rest)
                while rest:  # a write may be partial
                    rest = rest[os.write(descriptor, rest) :]
            if _DURABLE.get():
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        discard(path)
        raise cannot_write(target, size or written, error) from error
    except BaseException:
        discard(path)
        raise
    return Seal(digest.hexdigest(), written)


def discard(path: Path) -> None:
    """Remove a temp file or directory if it can be removed."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def remove_directory(path: Path) -> None:
    """Remove a directory as far as it can be removed; after a kill there is all of it, or nothing of that name."""
    aside = temp_path(path)
    with suppress(OSError):
        os.rename(path, aside)
    discard(aside)


@dataclass(frozen=True, slots=True)
class Draft:
    """A complete new version, safe on disk, that waits beside its target."""

    temp: Path
    target: Path
    seal: Seal

    def commit(self) -> None:
        """Take the place of the target."""
        try:
            os.replace(self.temp, self.target)
            sync_directory(self.target.parent)
        except OSError as error:
            discard(self.temp)
            raise cannot_write(self.target, self.seal.size, error) from error


def draft(path: Path, chunks: Iterable[Any], size: int | None) -> Draft:
    """Write the next version of `path` beside it."""
    require_replaceable(path)
    temp = temp_path(path)
    return Draft(temp, path, store(temp, chunks, size, path))


def write_chunks(path: Path, chunks: Iterable[bytes]) -> Seal:
    """Replace a file by what comes piece by piece, when all of it has come; sweeps what a kill left of it before."""
    sweep(path.parent, path.name)
    new = draft(path, chunks, None)
    new.commit()
    return new.seal


def write_bytes(path: str | Path, data: bytes) -> Seal:
    """Replace a file as a whole."""
    new = draft(Path(path), [data], len(data))
    new.commit()
    return new.seal


def write_text(path: str | Path, text: str) -> Seal:
    """Replace a file by text in UTF-8."""
    return write_bytes(path, text.encode("utf-8"))


def write_json(path: str | Path, obj: Any) -> Seal:
    """Replace a file by JSON with sorted keys; NaN is refused, for JSON has none."""
    return write_text(path, json_text(obj, str(path)))


def write_once(path: Path, data: bytes) -> bool:
    """A new file, whole from the first moment; False where anybody else has made it before, on any machine.

    A hard link is made by one of several that try, also on network file systems. There the reply to it may be lost:
    then the number of links shows who made it.
    """
    temp = temp_path(path)
    store(temp, [data], len(data), path)
    try:
        os.link(temp, path)
    except FileExistsError:
        return os.stat(temp).st_nlink > 1
    except OSError as error:
        raise cannot_write(path, len(data), error, "use a file system that has hard links") from error
    finally:
        discard(temp)
    sync_directory(path.parent)
    return True


def append(path: Path, data: bytes) -> None:
    """Add to a file that grows: all of the data or, on a full disk, nothing; a kill can leave a part of it."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        try:
            before, rest = os.fstat(descriptor).st_size, data
            try:
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
            except OSError:
                os.ftruncate(descriptor, before)
                raise
        finally:
            os.close(descriptor)
    except OSError as error:
        raise cannot_write(path, len(data), error) from error


def make_directory(path: Path) -> None:
    """The directory and its parents."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, None, error) from error


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """A directory that is made beside its place and put there whole: after a kill or without room nothing is there."""
    make_directory(target.parent)
    sweep(target.parent, target.name)
    temp = temp_path(target)
    try:
        yield temp
        try:
            os.rename(temp, target)
        except OSError as error:
            raise cannot_write(target, None, error) from error
        sync_directory(target.parent)
    finally:
        discard(temp)


def sweep(directory: str | Path, target: str | None = None) -> list[str]:
    """Remove what dead writers left in a directory (or of one file), not what living ones write. Returns the names."""
    removed = []
    for path in sorted(Path(directory).iterdir()):
        found = _TEMP_NAME.match(path.name)
        if found and target is not None and not path.name.startswith(f".{target}.tmp-"):
            continue
        if found and not _alive(int(found[1]), found[2]):
            discard(path)
            removed.append(path.name)
    return removed


def _alive(pid: int, token: str) -> bool:
    """Whether the writer of a temp file may still be writing it."""
    if pid == os.getpid():
        return token == outside.TOKEN
    if os.name != "posix":
        return True  # asking elsewhere would end the process
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
