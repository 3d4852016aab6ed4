"""The store of prepared data: entries of memory-mapped files, so that a corpus may be larger than memory.

    <cache>/tokens/<key>/
      index.json       what the entry holds, and the sha256 and size of every other file
      index.sha256     the sha256 of index.json, written last; without it the directory does not count
      train.target ..  the files

Every file is hashed on its way to the disk and checked when an entry is opened, which costs one sequential read. An
entry is written beside its place and renamed when complete; when two processes prepare the same data, the first
to finish wins and both use its files. An entry that is damaged is written again.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.core.opening import open_regular
from unrolled.data.storage import cache

FORMAT = 3
SEAL = "index.sha256"
LARGEST_INDEX = 256 * 2**20  # bytes of index.json that are read at all


class Damaged(Exception):
    """An entry that is not what was written; the text says in what."""


class _Gone(Exception):
    """There is no such entry, or it is being removed."""


@dataclass(frozen=True)
class Entry:
    """An entry that was opened and checked; it is in use as long as one of its arrays is."""

    index: dict[str, Any]
    files: dict[str, NDArray[np.uint8]]
    """the bytes of each, paged in as they are used"""

    def array(self, name: str, dtype: str) -> NDArray[Any]:
        """A file as an array; what is changed in it stays in this process."""
        return self.files[name].view(dtype)


# ---- writing


class SealedFile:
    """A file that is hashed as it is written."""

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        self._file = os.fdopen(descriptor, "wb", buffering=1 << 20)
        self._digest, self.size = hashlib.sha256(), 0

    def write(self, data: bytes | memoryview) -> None:
        self.size += len(data)
        self._file.write(data)
        self._digest.update(data)

    def finish(self) -> dict[str, Any]:
        """Bring it to the disk; its seal."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self.close()
        return {"sha256": self._digest.hexdigest(), "size": self.size}

    def close(self) -> None:
        self._file.close()


class Draft:
    """An entry that is being written."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.seals: dict[str, dict[str, Any]] = {}
        self.begun: list[SealedFile] = []

    def begin(self, name: str) -> SealedFile:
        """A file that is written piece by piece; `seals` gets what its `finish` returns."""
        self.begun.append(SealedFile(self.directory / name))
        return self.begun[-1]

    def write(self, name: str, data: bytes | memoryview) -> None:
        file = self.begin(name)
        try:
            file.write(data)
            self.seals[name] = file.finish()
        finally:
            file.close()

    def finish(self, index: dict[str, Any]) -> None:
        """The last two files: the index, and its seal."""
        text = json.dumps({"format": FORMAT, "files": dict(self.seals), **index}, indent=1)
        self.write(cache.INDEX, text.encode())
        self.write(SEAL, _seal_of(text.encode()))


def write(key: str, fill: Callable[[Draft], None]) -> Entry:
    """Make an entry with `fill`; that of another process, where it has been faster."""
    draft = None
    try:
        with cache.drafting(key) as part:
            draft = Draft(part)
            fill(draft)
            cache.sync(part)
            entry = _open(part)  # in use before it has its place, so that it is not removed
            entry = _take_place(part, key) or entry
        cache.evict(cache.place_of(key))
    except (Damaged, _Gone) as error:
        raise cache.cannot_write(OSError(errno.EIO, f"the written files cannot be read back: {error}")) from None
    except OSError as error:
        needed = sum(file.size for file in draft.begun) if draft is not None else 0
        raise cache.cannot_write(error, needed or None) from None
    return entry


def _take_place(part: Path, key: str) -> Entry | None:
    """Move a complete entry to its place; the entry that is there, where there is one."""
    place = cache.place_of(key)
    for _ in range(10):
        try:
            part.rename(place)
            return None
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        try:
            if (found := read(key)) is not None:
                return found
        except Damaged:
            pass
        cache.discard(place)
    raise OSError(errno.EEXIST, "there are files in the way that cannot be removed", str(place))


# ---- reading


def read(key: str) -> Entry | None:
    """An entry, all of it checked; None: there is none. Raises Damaged where it is not what was written."""
    cache.make_ready()
    try:
        return _open(cache.place_of(key))
    except _Gone:
        return None


def _open(directory: Path) -> Entry:
    try:
        if not stat.S_ISDIR(os.lstat(directory).st_mode):
            raise Damaged("it is not a directory")
        with _file(directory, cache.INDEX) as stream:
            values = _index(directory, stream.read(LARGEST_INDEX))
            files = {name: _checked(directory, name, seal) for name, seal in values["files"].items()}
            cache.touch(stream.fileno())
    except (OSError, DataError) as error:
        if not directory.exists():
            raise _Gone from None
        raise Damaged(str(error).split(";")[0]) from None
    return Entry(values, files)


def _index(directory: Path, data: bytes) -> dict[str, Any]:
    """What index.json says, where its seal agrees."""
    try:
        values = json.loads(data)
        number = values["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Damaged(f"{cache.INDEX} is not an index") from None
    if number == 1 and not (directory / SEAL).exists():  # of a version that sealed nothing
        raise _Gone
    with _file(directory, SEAL) as stream:
        if stream.read(1 << 10) != _seal_of(data):
            raise Damaged(f"{cache.INDEX} has changed since it was written")
    if number != FORMAT:
        raise _Gone
    return dict(values)


def _seal_of(index: bytes) -> bytes:
    """As `sha256sum` writes it."""
    return f"{hashlib.sha256(index).hexdigest()}  {cache.INDEX}\n".encode()


def _file(directory: Path, name: str) -> BinaryIO:
    """A file of an entry, opened; it is one of this user's own."""
    stream = open_regular(directory / name, within=directory)
    if os.name == "posix" and os.fstat(stream.fileno()).st_uid != os.geteuid():
        stream.close()
        raise Damaged(f"{name} belongs to another user")
    return stream


def _checked(directory: Path, name: str, seal: dict[str, Any]) -> NDArray[np.uint8]:
    """The bytes of a file, mapped and in use as long as the map is, after their sha256 was checked."""
    with _file(directory, name) as stream:
        if os.fstat(stream.fileno()).st_size != seal["size"]:
            raise Damaged(f"{name} has changed its size since it was written")
        if not cache.share(stream.fileno()):
            raise _Gone
        # the map keeps its own copy of the descriptor, and with it the lock; nothing cannot be mapped
        values = np.memmap(stream, np.uint8, mode="c") if seal["size"] else np.empty(0, np.uint8)
    if hashlib.sha256(values.data).hexdigest() != seal["sha256"]:
        raise Damaged(f"{name} has changed since it was written")
    return values
