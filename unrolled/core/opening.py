"""The one way to a file that a user or a directory names: it is a regular file, and not larger than expected.

A named pipe would be waited for, a device read for ever, and a file of a size that nobody meant would fill the memory
before anything is known to be wrong with it. Every read goes through `open_regular`; a test checks that no other file
of the package opens one by itself. Imports no torch.

| limit | for |
|---|---|
| `JSON` | settings, manifests, vocabularies, tables, records: all that becomes values in memory, 30 times as large |
| `CODE` | a user's Python file, a recipe |
| `DATA` | text, tables, images, sound, arrays, weights: what is read a piece at a time or has a limit of its own |
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.core.errors import DataError

JSON, CODE, DATA = 16 * 2**20, 4 * 2**20, 2**40  # bytes
DEPTH = 200  # of lists and tables within each other
SHOWN = 200  # characters of data that a message repeats

_KINDS = (
    (stat.S_ISDIR, "a folder, not a file", ""),
    (stat.S_ISFIFO, "a pipe, not a file", "; save its output to a file and give that"),
    (stat.S_ISSOCK, "a socket, not a file", "; save its output to a file and give that"),
    (stat.S_ISCHR, "a device, not a file", ""),
    (stat.S_ISBLK, "a device, not a file", ""),
)  # what is no regular file, and what to do where a user names it


class Opened(NamedTuple):
    """Which file a name meant when it was opened, and as it was then."""

    device: int
    number: int
    size: int
    changed: int  # when its content was changed, in nanoseconds

    @classmethod
    def of(cls, found: os.stat_result) -> Opened:
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


_recorded: ContextVar[dict[str, Opened] | None] = ContextVar("recorded", default=None)


_closed: ContextVar[bool] = ContextVar("closed", default=False)


@contextmanager
def closed() -> Iterator[None]:
    """A block in which no file is opened because data names it, only those of a saved directory (`within`): what
    strangers send is read in such a block."""
    token = _closed.set(True)
    try:
        yield
    finally:
        _closed.reset(token)


@contextmanager
def recorded() -> Iterator[dict[str, Opened]]:
    """The files that are opened in a block, by their full names, each as it was when it was first opened; without those
    that belong to a directory (`within`)."""
    seen: dict[str, Opened] = {}
    token = _recorded.set(seen)
    try:
        yield seen
    finally:
        _recorded.reset(token)


ONLY_IN = "UNROLLED_OPEN_ONLY_IN"
"""A variable of the environment, for a process that works on what a stranger sent and for those that it starts: files
are opened in this folder only, in saved directories (`within`) and in this package."""
PACKAGE = Path(os.path.realpath(__file__)).parents[1]


def _require_own(path: str | Path) -> None:
    """Refuse a file elsewhere, where a process may open those of one folder only."""
    only = os.environ.get(ONLY_IN)
    if only and not {Path(os.path.realpath(only)), PACKAGE} & {*Path(os.path.realpath(path)).parents}:
        raise DataError(f"{shortened(str(path))}: files that data names are not opened here; send one file alone")


def open_regular(path: str | Path, limit: int = DATA, within: Path | None = None) -> BufferedReader:
    """A regular file of at most `limit` bytes, opened for reading without waiting; anything else is a DataError.

    Links are followed, but where the file belongs to a directory (`within`) not out of that.
    """
    place: str | Path = path
    if within is None and _closed.get():
        raise DataError(f"{shortened(str(path))}: files are not opened here; send their content instead")
    try:
        if within is None:
            _require_own(path)
        else:
            place = os.path.realpath(path)
            if Path(os.path.realpath(within)) not in Path(place).parents:
                raise DataError(f"{path}: points outside {within}; replace the link by the file itself")
        _require_regular(path, os.stat(place), within)  # first, because already opening some devices does something
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        flags |= getattr(os, "O_NOFOLLOW", 0) if within is not None else 0
        stream = os.fdopen(os.open(place, flags), "rb")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"{path}: cannot be opened ({reason}); check the path and its permissions") from None
    try:
        found = os.fstat(stream.fileno())  # of what was opened: the name may mean another file by now
        _require_regular(path, found, within)
        _require_size(path, found.st_size, limit)
    except DataError:
        stream.close()
        raise
    if within is None and (seen := _recorded.get()) is not None:
        seen.setdefault(os.path.abspath(path), Opened.of(found))
    return stream


def require_own_folders(directory: str | Path) -> None:
    """Refuse a directory in which a folder is a link: what is written or removed there would be elsewhere."""
    for place, folders, _ in os.walk(directory):
        for name in folders:
            if (found := Path(place, name)).is_symlink():
                raise DataError(f"{found} is a link to a folder elsewhere; replace the link by the folder itself")


def read_bytes(path: str | Path, limit: int, within: Path | None = None) -> bytes:
    """The whole content of a file, at most `limit` bytes, even if it grows meanwhile or does not tell its size."""
    with open_regular(path, limit, within) as stream:
        try:
            data = stream.read(limit + 1)
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None
    _require_size(path, len(data), limit)
    return data


def read_text(path: str | Path, limit: int, within: Path | None = None) -> str:
    """The whole content of a file in UTF-8."""
    try:
        return read_bytes(path, limit, within).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 at byte {error.start}") from None


def read_json(path: str | Path, within: Path | None = None) -> Any:
    """The value of a JSON file that may be damaged or hostile."""
    return parse_json(read_bytes(path, JSON, within), str(path))


def parse_json(data: bytes | str, where: str) -> Any:
    """The value of a JSON text that may be damaged or hostile; NaN and infinity are no numbers of JSON."""
    _require_size(where, len(data), JSON)

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not a JSON number")

    try:
        value = json.loads(data if isinstance(data, str) else data.decode("utf-8"), parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise DataError(f"{where}, line {error.lineno}, column {error.colno}: not JSON ({error.msg})") from None
    except RecursionError:
        raise DataError(f"{where}: JSON is nested more than {DEPTH} levels deep, which is not supported") from None
    except ValueError as error:  # not UTF-8, NaN, a number of thousands of digits
        raise DataError(f"{where}: not JSON ({shortened(str(error))})") from None
    if _is_deep(value):
        raise DataError(f"{where}: JSON is nested more than {DEPTH} levels deep, which is not supported")
    return value


def json_text(value: Any, indent: int | None = None, encoding: str = "utf-8") -> str:
    """JSON in letters that an encoding can hold; others, such as those of an oddly encoded file name, are escaped.

    >>> json_text(["é", "caf\\udce9"])
    '["\\\\u00e9", "caf\\\\udce9"]'
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent)
    return text


def exists(path: str | Path) -> bool:
    """Whether there is a file or folder of that name; a text that can be no name is none. Where no file is opened
    because data names it (`closed`), there is none."""
    if _closed.get():
        return False
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # too long, or with a NUL
        return False


def shortened(value: object, most: int = SHOWN) -> str:
    """A value of data as a message shows it: its beginning, where it is long.

    >>> shortened("ab"), shortened("x" * 1000, most=4)
    ('ab', 'xxxx... (1,000 characters)')
    """
    try:
        text = value if isinstance(value, str) else repr(value)
    except ValueError:  # a whole number of thousands of digits
        text = "a number with thousands of digits"
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEPTH + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _require_regular(path: str | Path, found: os.stat_result, within: Path | None) -> None:
    if stat.S_ISREG(found.st_mode):
        return
    kind, advice = next(((words, more) for test, words, more in _KINDS if test(found.st_mode)), ("not a file", ""))
    raise DataError(f"{path}: this is {kind}{advice if within is None else ''}")


def _require_size(path: str | Path, size: int, limit: int) -> None:
    if size > limit:
        raise DataError(f"{path}: has {size:,} bytes, more than the limit of {limit:,} for such a file")
