"""The token store: encoded text in memory-mapped files, so that a corpus may be larger than memory.

    <cache>/tokens/<fingerprint>/
      index.json       facts, labels and the size of every other file; without it the directory does not count
      tokenizer.json   the codec
      train.tokens     ids one after another, uint16 or int32
      train.offsets    int64 [n+1], where each example begins; likewise .classes, .rows, .ends

The cache is $UNROLLED_CACHE, or `unrolled` in the user's cache directory. A store is written beside its place and
renamed when complete; when two processes prepare the same data, the first to finish wins and both use its files.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import CannotWrite
from unrolled.data.codec import UNKNOWN

FORMAT = 1
PART = ".part"
_COUNTS = ("n_chars", "n_bytes", "n_unknown", "is_stream")


@dataclass(frozen=True)
class Section:
    """One part of the data (train, valid or test) as arrays; the long ones are views of files."""

    tokens: NDArray[Any]
    """[n] the ids of all examples after each other, <start> and <stop> not among them; or [n, D] binary vectors"""
    offsets: NDArray[np.int64]
    """[n+1]: example i is tokens[offsets[i]:offsets[i+1]]; a stream is one example"""
    classes: NDArray[np.int32] | None
    """[n]: the class of each example"""
    n_chars: int
    n_bytes: int
    n_unknown: int
    is_stream: bool
    rows: NDArray[np.int64] | None = None
    """[n]: the line or row of the source, counted from 1, that each example comes from"""
    ends: NDArray[np.bool_] | None = None
    """[n]: False where an example was cut because it was too long, so that no <stop> follows; None: all end"""

    @property
    def n_examples(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        return len(self.tokens)

    def example(self, i: int) -> NDArray[Any]:
        return self.tokens[self.offsets[i] : self.offsets[i + 1]]

    def first(self, limit: int) -> Section:
        """The examples that fit into the first `limit` tokens, at least one; of a stream, these tokens."""
        if self.n_tokens <= limit:
            return self
        if self.is_stream:
            return replace(self, tokens=self.tokens[:limit], offsets=np.array([0, limit]))
        n = max(1, int(np.searchsorted(self.offsets, limit, side="right")) - 1)
        return replace(
            self,
            tokens=self.tokens[: self.offsets[n]],
            offsets=self.offsets[: n + 1],
            classes=None if self.classes is None else self.classes[:n],
            rows=None if self.rows is None else self.rows[:n],
            ends=None if self.ends is None else self.ends[:n],
        )

    def share(self, fraction: float) -> Section:
        """The beginning of a stream, or as many examples, evenly spread and copied into memory, as `fraction` says."""
        if fraction >= 1:
            return self
        if self.is_stream:
            return self.first(max(2, round(fraction * self.n_tokens)))
        n = max(1, round(fraction * self.n_examples))
        chosen = np.arange(n) * self.n_examples // n  # [n]
        lengths = np.diff(self.offsets)[chosen]
        return replace(
            self,
            tokens=np.concatenate([self.tokens[self.offsets[i] : self.offsets[i + 1]] for i in chosen]),
            offsets=np.concatenate([[0], np.cumsum(lengths)]),
            classes=None if self.classes is None else self.classes[chosen],
            rows=None if self.rows is None else self.rows[chosen],
            ends=None if self.ends is None else self.ends[chosen],
        )


class SectionWriter:
    """Appends encoded text to the files of one section."""

    def __init__(self, directory: Path, name: str, codec_size: int, is_stream: bool) -> None:
        self._path = directory / name
        self._file = self._path.with_suffix(".tokens").open("wb", buffering=1 << 20)
        self._dtype = np.dtype(np.uint16 if codec_size <= 1 << 16 else np.int32)
        self.is_stream = is_stream
        self.n_tokens = self.n_chars = self.n_bytes = self.n_unknown = 0
        self._offsets, self._classes, self._rows = array("q", [0]), array("i"), array("q")
        self._ends = bytearray()

    def add_text(self, ids: NDArray[np.int64], n_chars: int, n_bytes: int) -> None:
        self._file.write(ids.astype(self._dtype).tobytes())
        self.n_tokens += len(ids)
        self.n_chars += n_chars
        self.n_bytes += n_bytes
        self.n_unknown += int(np.count_nonzero(ids == UNKNOWN))

    def end_example(self, label: int | None, row: int, ends: bool) -> None:
        """What was added since the last call is one example."""
        self._offsets.append(self.n_tokens)
        self._rows.append(row)
        self._ends.append(ends)
        if label is not None:
            self._classes.append(label)

    @property
    def n_examples(self) -> int:
        return 1 if self.is_stream else len(self._offsets) - 1

    def classes_seen(self) -> set[int]:
        return set(self._classes)

    def lengths(self) -> NDArray[np.int64]:
        offsets = np.frombuffer(self._offsets, np.int64)
        return offsets[1:] - offsets[:-1]

    def close_file(self) -> None:
        self._file.close()

    def close(self) -> dict[str, Any]:
        """Write what is left; the entry for the index."""
        self.close_file()
        if self.is_stream:
            self._offsets = array("q", [0, self.n_tokens])
        parts: dict[str, NDArray[Any]] = {"offsets": np.frombuffer(self._offsets, np.int64)}
        if self._classes:
            parts["classes"] = np.frombuffer(self._classes, np.int32)
        if self._rows:
            parts["rows"] = np.frombuffer(self._rows, np.int64)
        if not all(self._ends):
            parts["ends"] = np.frombuffer(self._ends, np.bool_)
        for suffix, values in parts.items():
            values.tofile(self._path.with_suffix(f".{suffix}"))
        counts = {name: getattr(self, name) for name in _COUNTS}
        return {"dtype": self._dtype.name, "parts": ["tokens", *parts], **counts}


def cache_directory() -> Path:
    """Where prepared data is kept: $UNROLLED_CACHE, $XDG_CACHE_HOME/unrolled or ~/.cache/unrolled."""
    if own := os.environ.get("UNROLLED_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unrolled"


def place_of(fingerprint: str) -> Path:
    return cache_directory() / "tokens" / fingerprint


def read(fingerprint: str) -> tuple[dict[str, Section], dict[str, Any]] | None:
    """The sections and the index of a complete store; None when there is none or its files are not whole."""
    directory = place_of(fingerprint)
    try:
        index = json.loads((directory / "index.json").read_text(encoding="utf-8"))
        if index["format"] != FORMAT or any((directory / f).stat().st_size != n for f, n in index["sizes"].items()):
            return None
        sections = {name: _open_section(directory / name, entry) for name, entry in index["sections"].items()}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return sections, index


def _open_section(path: Path, entry: dict[str, Any]) -> Section:
    dtypes = {"tokens": entry["dtype"], "offsets": "int64", "classes": "int32", "rows": "int64", "ends": "bool"}
    parts = {part: map_file(path.with_suffix(f".{part}"), dtypes[part]) for part in entry["parts"]}
    values: dict[str, Any] = {"classes": None, **parts, **{name: entry[name] for name in _COUNTS}}
    return Section(**values)


def map_file(path: Path, dtype: str) -> NDArray[Any]:
    """A file as a read-only array that is paged in as it is used."""
    if path.stat().st_size == 0:  # nothing cannot be mapped
        return np.empty(0, dtype)
    return np.memmap(path, dtype, mode="r")


@contextmanager
def writing(fingerprint: str) -> Iterator[Path]:
    """A new directory to fill; on leaving it takes its place, unless another process has been faster."""
    place = place_of(fingerprint)
    part = place.with_name(f"{fingerprint}.{os.getpid()}.{time.time_ns()}{PART}")
    try:
        sweep(place.parent)
        part.mkdir(parents=True)
        try:
            yield part
            _sync(part)
            _take_place(part, place, fingerprint)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise _cannot_write(error, place.parent) from None


def write_index(directory: Path, sections: dict[str, Any], more: dict[str, Any]) -> None:
    """The last file: it names the others and their sizes."""
    sizes = {path.name: path.stat().st_size for path in sorted(directory.iterdir())}
    index = {"format": FORMAT, "sizes": sizes, "sections": sections, **more}
    (directory / "index.json").write_text(json.dumps(index, ensure_ascii=False, indent=1), encoding="utf-8")


def _take_place(part: Path, place: Path, fingerprint: str) -> None:
    for _ in range(3):
        try:
            part.rename(place)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if read(fingerprint) is not None:
            return
        _remove(place)  # incomplete: left by a damaged disk or an older format
    raise OSError(errno.EEXIST, "the place is taken by files that cannot be removed", str(place))


def _remove(place: Path) -> None:
    """Move away first, so that no reader ever sees half a directory."""
    away = place.with_name(f"{place.name}.{os.getpid()}.{time.time_ns()}{PART}")
    try:
        place.rename(away)
    except FileNotFoundError:
        return
    shutil.rmtree(away, ignore_errors=True)


def sweep(directory: Path) -> None:
    """Remove what processes that are gone have left behind; an hour of grace covers other machines on one disk."""
    for part in directory.glob(f"*{PART}"):
        words = part.name.split(".")
        try:
            old = time.time() - part.stat().st_mtime > 3600
            if old and not _is_running(int(words[-3])):
                shutil.rmtree(part, ignore_errors=True)
        except (OSError, ValueError, IndexError):
            continue


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _sync(directory: Path) -> None:
    """All files to the disk before the rename makes them count."""
    for path in [*directory.iterdir(), directory]:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _cannot_write(error: OSError, place: Path) -> CannotWrite:
    hint = "set UNROLLED_CACHE to a directory with room"
    if error.errno == errno.ENOSPC:
        free = shutil.disk_usage(_existing(place)).free
        return CannotWrite(f"{place}: the disk is full, {free:,} bytes are free; make room or {hint}")
    return CannotWrite(f"{place}: prepared data cannot be written ({error.strerror or error}); {hint}")


def _existing(place: Path) -> Path:
    return next(parent for parent in (place, *place.parents) if parent.exists())


def frequencies(section: Section, size: int) -> NDArray[np.float32]:
    """The share [size] of each token among all of a section."""
    counts = np.zeros(size, dtype=np.int64)
    for start in range(0, len(section.tokens), 1 << 22):
        counts += np.bincount(section.tokens[start : start + (1 << 22)], minlength=size)
    return (counts / counts.sum()).astype(np.float32)


def section_from(tokens: Sequence[NDArray[np.int64]], classes: Sequence[int] | None, is_stream: bool) -> Section:
    """A section of arrays in memory, for small things and for tests."""
    joined = np.concatenate([*tokens, np.empty(0, np.int64)]).astype(np.int64)
    offsets = np.cumsum([0, *map(len, tokens)]).astype(np.int64)
    if is_stream:
        offsets = np.array([0, len(joined)], np.int64)
    labels = None if classes is None else np.array(classes, np.int32)
    return Section(joined, offsets, labels, len(joined), len(joined), int((joined == UNKNOWN).sum()), is_stream)
