"""Encoded text as arrays: the sections of prepared data, and the writer that fills their files."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.tokens import UNKNOWN
from unrolled.data.store import Draft, Entry

COUNTS = ("n_chars", "n_bytes", "n_unknown", "is_stream")


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

    def __init__(self, draft: Draft, name: str, codec_size: int, is_stream: bool) -> None:
        self._draft, self._name = draft, name
        self._file = draft.begin(f"{name}.tokens")
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

    def close(self) -> None:
        """Leave the file as it is."""
        self._file.close()

    def finish(self) -> dict[str, Any]:
        """Write what is left; what the index says of the section."""
        self._draft.seals[f"{self._name}.tokens"] = self._file.finish()
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
            self._draft.write(f"{self._name}.{suffix}", values.tobytes())
        counts = {name: getattr(self, name) for name in COUNTS}
        return {"dtype": self._dtype.name, "parts": ["tokens", *parts], **counts}


def stored_sections(entry: Entry) -> dict[str, Section]:
    """The sections of an entry of the store, as views of its files."""
    result = {}
    for name, about in entry.index["sections"].items():
        dtypes = {"tokens": about["dtype"], "offsets": "int64", "classes": "int32", "rows": "int64", "ends": "bool"}
        parts = {part: entry.array(f"{name}.{part}", dtypes[part]) for part in about["parts"]}
        values: dict[str, Any] = {"classes": None, **parts, **{count: about[count] for count in COUNTS}}
        result[name] = Section(**values)
    return result


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
