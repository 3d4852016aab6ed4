"""The cache of prepared data: where it is, who may read it, how large it may grow, and what may be removed.

    <cache>/tokens/<key>/                  an entry (see store); what is there under such a name is complete
    <cache>/tokens/<key>.<number>.part/    an entry that is being written, or was when its process ended

The cache is $UNROLLED_CACHE, or `unrolled` in the user's cache directory, and belongs to one user alone (mode 0700). A
process that writes or reads an entry holds a lock (flock) on its files, which ends with the process: so what is in use
is never removed, and what a killed process has left is.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from unrolled.core import outside
from unrolled.core.errors import CannotWrite, Misused

if sys.platform != "win32":
    import fcntl

FOLDER, PART, INDEX = "tokens", ".part", "index.json"
LIMIT = "UNROLLED_CACHE_LIMIT"
USUAL_LIMIT = "2 GB"
_ENTRY = re.compile(r"[0-9a-f]{32}")
_DAY = 86_400.0  # after which something left behind is removed where locks do not tell whether it is in use


class Kept(NamedTuple):
    """An entry: its directory, its bytes, and when it was last used."""

    place: Path
    size: int
    used: float


class Cleared(NamedTuple):
    """How many entries and bytes were removed, and how many entries a running process uses."""

    removed: int
    size: int
    in_use: int


# ---- where


def cache_directory() -> Path:
    """$UNROLLED_CACHE, $XDG_CACHE_HOME/unrolled or ~/.cache/unrolled."""
    if own := os.environ.get("UNROLLED_CACHE"):
        return Path(own)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unrolled"
    except RuntimeError:  # a user without a home, as in some containers
        raise Misused("no home directory was found for prepared data: set UNROLLED_CACHE to a directory") from None


def place_of(key: str) -> Path:
    return cache_directory() / FOLDER / key


def limit() -> int | None:
    """How many bytes the entries may take together, by $UNROLLED_CACHE_LIMIT; None: any number."""
    text = os.environ.get(LIMIT) or USUAL_LIMIT
    if text.strip().lower() == "none":
        return None
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?) *([KMGT]?)B?", text.strip().upper(), re.ASCII)
    if found is None:
        raise Misused(f"invalid value {LIMIT} = {text[:40]!r}: expected a size such as 500 MB or 2 GB, or none")
    return int(float(found[1]) * 1000 ** " KMGT".index(found[2] or " "))


def make_ready() -> None:
    """Make the directory of entries where it is missing; it belongs to this user, and no one else may look into it."""
    limit()  # a wrong setting is told before any work
    home = cache_directory()
    place = home / FOLDER
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.name == "posix":
            _require_owner(home, os.lstat(home), {os.geteuid(), 0})
            _require_owner(home, os.stat(home), {os.geteuid(), 0})
        place.mkdir(mode=0o700, exist_ok=True)
        if os.name == "posix":
            _make_private(place)
            if os.listdir(home) == [FOLDER]:  # nothing else in it: a directory for this alone
                _make_private(home, os.stat(home))
    except OSError as error:
        raise cannot_write(error) from None


def _make_private(place: Path, found: os.stat_result | None = None) -> None:
    found = found or os.lstat(place)
    _require_owner(place, found, {os.geteuid()})
    if not stat.S_ISDIR(found.st_mode):
        raise CannotWrite(
            f"{place}: this is a link, expected a directory; remove it, or set UNROLLED_CACHE to another directory"
        )
    if stat.S_IMODE(found.st_mode) & 0o777 != 0o700:
        place.chmod(0o700)


def _require_owner(place: Path, found: os.stat_result, owners: set[int]) -> None:
    if found.st_uid not in owners:
        raise CannotWrite(
            f"{place}: this directory belongs to another user, who could change prepared data in it; set "
            "UNROLLED_CACHE to a directory of your own"
        )


def cannot_write(error: OSError, needed: int | None = None) -> CannotWrite:
    """The sentence for an entry of so many bytes (None: not known) that cannot be written."""
    place = cache_directory() / FOLDER
    hint = "set UNROLLED_CACHE to a directory with more space"
    return outside.cannot_write(place, needed, error, hint)


# ---- locks


def share(descriptor: int) -> bool:
    """Mark an open file as in use, as long as it or a map of it is open; False: it is being removed."""
    return _lock(descriptor, exclusive=False) is not False


def _lock(descriptor: int, exclusive: bool) -> bool | None:
    """Whether the lock was free; None: there are no locks here."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextmanager
def _claimed(paths: list[Path]) -> Iterator[bool | None]:
    """Whether no process uses any of these files or directories, which are locked meanwhile; None: nobody knows."""
    with ExitStack() as opened:
        free: list[bool | None] = []
        for path in paths:
            with suppress(OSError):
                descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
                opened.callback(os.close, descriptor)
                free.append(_lock(descriptor, exclusive=True))
        yield False if False in free else None if None in free else True


# ---- writing and removing


@contextmanager
def drafting(key: str) -> Iterator[Path]:
    """A new directory to fill, locked; what is left of it afterwards is removed."""
    make_ready()
    _sweep()
    part, descriptor = _locked_part(key)
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def _locked_part(key: str) -> tuple[Path, int | None]:
    """Another process may sweep the directory away before it is locked; then a new one is made."""
    while True:
        part = place_of(f"{key}.{secrets.token_hex(8)}{PART}")
        part.mkdir(mode=0o700)
        if os.name != "posix":
            return part, None
        with suppress(FileNotFoundError):
            descriptor = os.open(part, os.O_RDONLY)
            if _lock(descriptor, exclusive=True) is not False and part.exists():
                return part, descriptor
            os.close(descriptor)


def sync(directory: Path) -> None:
    """The names of all files to the disk before the rename makes them count."""
    if os.name != "posix":
        return  # other systems cannot open a directory
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def discard(place: Path) -> None:
    """Remove an entry, even if it is in use; it is moved away first, so that no reader meets half of it."""
    away = place.with_name(f"{place.name}.{secrets.token_hex(8)}{PART}")
    try:
        place.rename(away)
    except FileNotFoundError:
        return
    _delete(away)


def _delete(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def _sweep() -> None:
    """Remove what processes that have ended left behind."""
    for part in (cache_directory() / FOLDER).glob(f"*{PART}"):
        with suppress(OSError), _claimed([part]) as free:
            old = time.time() - part.lstat().st_mtime > _DAY
            if free or (free is None and old):
                _delete(part)


def kept() -> list[Kept]:
    """All entries, the one that was not used for longest first."""
    try:
        places = [path for path in (cache_directory() / FOLDER).iterdir() if _ENTRY.fullmatch(path.name)]
    except OSError:
        return []
    found = []
    for place in places:
        with suppress(OSError):  # removed meanwhile
            sizes = [path.lstat().st_size for path in place.iterdir()]
            index = place / INDEX
            used = index.lstat().st_atime if index.exists() else 0.0
            found.append(Kept(place, sum(sizes), used))
    return sorted(found, key=lambda entry: (entry.used, entry.place))


def touch(index: int) -> None:
    """An entry is used now; `index` is its open index. The time of writing stays."""
    with suppress(OSError):
        os.utime(index, ns=(time.time_ns(), os.fstat(index).st_mtime_ns))


def _remove_unused(place: Path) -> bool:
    """Remove an entry unless a process uses it."""
    try:
        with _claimed(list(place.iterdir())) as free:
            if not free:
                return False
            away = place.with_name(f"{place.name}.{secrets.token_hex(8)}{PART}")
            place.rename(away)
        _delete(away)
    except OSError:
        return not place.exists()  # another process was faster
    return True


def evict(newest: Path) -> None:
    """Remove entries, the least recently used first, until all fit into the limit; not the newest, and none in use."""
    most = limit()
    if most is None:
        return
    entries = kept()
    total = sum(entry.size for entry in entries)
    for entry in entries:
        if total <= most:
            return
        if entry.place != newest and _remove_unused(entry.place):
            total -= entry.size


def clear() -> Cleared:
    """Remove all entries that no process uses, and what killed processes left."""
    if not (cache_directory() / FOLDER).is_dir():
        return Cleared(0, 0, 0)
    make_ready()
    _sweep()
    entries = kept()
    gone = [entry.size for entry in entries if _remove_unused(entry.place)]
    return Cleared(len(gone), sum(gone), len(entries) - len(gone))
