"""Run directories as bytes, for machines that share no folder: packed as they are at one moment, put in place whole."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from unrolled.core.errors import DataError
from unrolled.core.opening import read_bytes
from unrolled.core.outside import write_new
from unrolled.runs.storage import atomic
from unrolled.runs.storage.locks import LOCK

TRIES, PAUSE = 10, 0.05  # to find a moment in which nothing is written, and the seconds between them

Parcel = dict[str, dict[str, bytes]]  # content by path, by the folder that it is in


def pack(root: Path, folders: Iterable[str]) -> Parcel:
    """The folders that are there, each as a kill at some moment would leave it."""
    return {name: _packed(root / name) for name in folders if (root / name).is_dir()}


def unpack(root: Path, parcel: Parcel) -> None:
    """Put each folder in the place of the one that was there."""
    for name, files in parcel.items():
        target = root / _within(name)
        new = atomic.temp_path(target)
        for path, content in files.items():
            write_new(new / _within(path), content)
        if target.exists():
            atomic.remove_directory(target)
        try:
            os.rename(new, target)
        except OSError as error:
            atomic.discard(new)
            raise atomic.cannot_write(target, None, error) from error


def _packed(folder: Path) -> dict[str, bytes]:
    for _ in range(TRIES):
        found = _listed(folder)
        with suppress(DataError):  # a file that is gone or longer meanwhile
            content = {path: read_bytes(folder / path, size, within=folder) for path, (_, size, _) in found.items()}
            if _listed(folder) == found:
                return content
        time.sleep(PAUSE)
    raise DataError(f"{folder}: it changes too quickly to be packed")


def _listed(folder: Path) -> dict[str, tuple[int, int, int]]:
    """The files of a folder, each with what identifies its version; no locks, nothing that is being written."""
    found = {}
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not atomic.is_temp(name)]
        for name in files:
            if name != LOCK and not atomic.is_temp(name):
                path = Path(place) / name
                with suppress(FileNotFoundError):
                    now = path.stat()
                    found[path.relative_to(folder).as_posix()] = (now.st_ino, now.st_size, now.st_mtime_ns)
    return found


def _within(path: str) -> Path:
    """A path that stays below where it is put."""
    parts = Path(path).parts
    if not parts or Path(path).is_absolute() or ".." in parts:
        raise DataError(f"'{path}' is not a path within a run directory")
    return Path(*parts)
