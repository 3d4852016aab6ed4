"""Examples in the store: each field and column is a file of its own, used as it lies on the disk.

<split>.<field>  and  <split>.<field>.<level>     values and offsets
<split>.<column>                                  one value an example; texts as JSON
"""

from __future__ import annotations

import json
from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.tokens import UNKNOWN
from unrolled.data.examples import ENDS, ROWS, Column, Examples, Ragged
from unrolled.data.storage.store import Draft, Entry

TEXTS = "texts"  # instead of a type: a list of strings


def put_examples(draft: Draft, split: str, examples: Examples) -> dict[str, Any]:
    """Write a split; what the index says of it."""
    fields = {}
    for name, field in examples.fields.items():
        values = _put_array(draft, f"{split}.{name}", field.values)
        fields[name] = {"values": values, "offsets": _put_offsets(draft, f"{split}.{name}", field.offsets)}
    columns = {name: _put_column(draft, f"{split}.{name}", column) for name, column in examples.columns.items()}
    return {"fields": fields, "columns": columns, "is_stream": examples.is_stream, "counts": dict(examples.counts)}


def stored_examples(entry: Entry) -> dict[str, Examples]:
    """The splits of an entry, as views of its files."""
    return {split: _examples(entry, split, about) for split, about in entry.index["splits"].items()}


def _examples(entry: Entry, split: str, about: dict[str, Any]) -> Examples:
    fields = {}
    for name, told in about["fields"].items():
        place = f"{split}.{name}"
        offsets = tuple(_array(entry, f"{place}.{level}", each) for level, each in enumerate(told["offsets"]))
        fields[name] = Ragged(_array(entry, place, told["values"]), offsets)
    columns = {name: _column(entry, f"{split}.{name}", told) for name, told in about["columns"].items()}
    return Examples(fields, columns, about["is_stream"], about["counts"])


def _put_array(draft: Draft, name: str, values: NDArray[Any]) -> dict[str, Any]:
    whole = np.ascontiguousarray(values)
    draft.write(name, whole.reshape(-1).view(np.uint8).data)
    return {"type": whole.dtype.str, "shape": list(values.shape)}


def _array(entry: Entry, name: str, told: dict[str, Any]) -> NDArray[Any]:
    return entry.array(name, told["type"]).reshape(told["shape"])


def _put_offsets(draft: Draft, name: str, offsets: tuple[NDArray[np.int64], ...]) -> list[dict[str, Any]]:
    return [_put_array(draft, f"{name}.{level}", each) for level, each in enumerate(offsets)]


def _put_column(draft: Draft, name: str, column: Column) -> dict[str, Any]:
    if isinstance(column, np.ndarray):
        return _put_array(draft, name, column)
    draft.write(name, json.dumps(list(column)).encode())
    return {"type": TEXTS}


def _column(entry: Entry, name: str, told: dict[str, Any]) -> Column:
    if told["type"] == TEXTS:
        texts: list[str] = json.loads(bytes(entry.files[name]))
        return texts
    return _array(entry, name, told)


class TokenWriter:
    """Appends encoded text to the files of one split, which is never held as a whole."""

    def __init__(self, draft: Draft, split: str, field: str, codec_size: int, is_stream: bool) -> None:
        self._draft, self._split, self._field = draft, split, field
        self._file = draft.begin(f"{split}.{field}")
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

    def finish(self, condition: str) -> dict[str, Any]:
        """Write what is left, classes as the column `condition`; what the index says of the split."""
        place = f"{self._split}.{self._field}"
        self._draft.seals[place] = self._file.finish()
        if self.is_stream:
            self._offsets = array("q", [0, self.n_tokens])
        columns: dict[str, NDArray[Any]] = {}
        if self._classes:
            columns[condition] = np.frombuffer(self._classes, np.int32)
        if self._rows:
            columns[ROWS] = np.frombuffer(self._rows, np.int64)
        if not all(self._ends):
            columns[ENDS] = np.frombuffer(self._ends, np.bool_)
        values = {"type": self._dtype.str, "shape": [self.n_tokens]}
        offsets = _put_offsets(self._draft, place, (np.frombuffer(self._offsets, np.int64),))
        return {
            "fields": {self._field: {"values": values, "offsets": offsets}},
            "columns": {name: _put_column(self._draft, f"{self._split}.{name}", columns[name]) for name in columns},
            "is_stream": self.is_stream,
            "counts": {"characters": self.n_chars, "bytes": self.n_bytes, "unknown": self.n_unknown},
        }
