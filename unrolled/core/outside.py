"""Failures from outside, as errors with a sentence: a full disk, a file that cannot be opened, memory that ran out.

Code that writes says what it needed by `cannot_write`. What reaches the end of a command, or of a run in a comparison,
is given to `explained`; only what that does not know is a bug of this library. Imports no torch.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import secrets
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from unrolled.core.errors import CannotWrite, DataError, OutOfMemory, UnrolledError
from unrolled.core.front import option

# The token tells this process from an earlier one with the same number (in a container everybody may be number 1).
TOKEN = secrets.token_hex(4)
_COUNTER = itertools.count()
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
UNREADABLE = (
    errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EIO,
    errno.ESTALE, errno.ENXIO, errno.ENODEV, errno.EMFILE, errno.ENFILE,
)  # fmt: skip
NO_MEMORY = re.compile("can't allocate memory|not enough memory|out of memory|[Ss]torage size calculation overflowed")
ASKED = re.compile(r"allocate (\d+) bytes|allocate ([\d.]+ [KMGT]iB)")


def cannot_write(path: str | Path, needed: int | None, error: OSError, advice: str | None = None) -> CannotWrite:
    """The sentence for a failed write: the path, why, and the bytes needed (None: not known) and free."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    asked = "" if needed is None else f"{needed:,} bytes are needed and "
    advice = advice or f"name another location with {option('out')}"
    return CannotWrite(
        f"{path} cannot be written ({error.strerror or error}): {asked}{_free(Path(path))}; existing files are "
        f"intact; {'free some space, or ' if full else ''}{advice}"
    )


def temp_path(target: Path) -> Path:
    """A name beside `target` that no other writer uses."""
    return target.with_name(f".{target.name}.tmp-{os.getpid()}-{TOKEN}-{next(_COUNTER)}")


def require_replaceable(path: Path) -> None:
    """Refuse to take the place of a device, a pipe or a folder, also behind a link: a rename would remove it."""
    try:
        mode = os.stat(path).st_mode
    except OSError:  # nothing is there, or what is wrong with the name is told by the write
        return
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a device or a pipe"
        raise CannotWrite(f"{path} is {kind} and cannot be replaced; name a file with {option('out')}")


def write_new(path: Path, data: bytes) -> None:
    """A file, whole or not at all: what was under its name stays until then, and a link there is not followed."""
    require_replaceable(path)
    temp = temp_path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temp.open("xb") as stream:
            stream.write(data)
        os.replace(temp, path)
    except OSError as error:
        with suppress(OSError):
            temp.unlink()
        raise cannot_write(path, len(data), error) from error


def _free(path: Path) -> str:
    """The room on the disk of a file that may not be there."""
    for place in (path.absolute(), *path.absolute().parents):
        try:
            return f"{shutil.disk_usage(place).free:,} are free"
        except OSError:  # not there, or a name that is too long
            continue
    return "the free space is unknown"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out; torch says so by a plain RuntimeError that only its text identifies."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and bool(NO_MEMORY.search(str(error))))


def explained(error: BaseException) -> UnrolledError | None:
    """The error with a sentence and an exit code that a failure from outside is; None for a bug of this library."""
    if isinstance(error, UnrolledError):
        return error
    if is_out_of_memory(error):
        asked = ASKED.search(str(error))
        size = "" if asked is None else f" ({asked[2] or f'{int(asked[1]):,} bytes'} requested)"
        smaller = f"make the model, {option('batch_size')} or the data smaller"
        return OutOfMemory(f"out of memory{size}: {smaller}")
    if isinstance(error, OSError) and error.errno in FULL:
        return cannot_write(_name(error) or Path.cwd(), None, error)
    if isinstance(error, OSError) and error.errno in UNREADABLE:
        return DataError(f"{_name(error) or 'a file'} cannot be opened ({error.strerror})")
    if isinstance(error, UnicodeDecodeError):
        return DataError(f"not text in {error.encoding}: byte {error.object[error.start]:#x} at position {error.start}")
    return None


def _name(error: OSError) -> str | None:
    name = error.filename2 or error.filename
    return name if isinstance(name, str) and name else None
