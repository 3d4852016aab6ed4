"""A field that grows: sequences are added one by one, and many of them lie on the disk rather than in memory."""

from __future__ import annotations

import tempfile
from array import array
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from unrolled.data.examples import Ragged, offsets_of
from unrolled.data.storage import cache

SPILL = 32 * 2**20  # bytes; more are written to an unnamed file beside the cache, which ends with its last use


class Growing:
    """Sequences of one type and width.

    >>> field = Growing()
    >>> for values in ([1, 2], [3]):
    ...     field.add(np.array(values))
    >>> field.ragged()[1].tolist(), len(field)
    ([3], 2)
    """

    def __init__(self) -> None:
        self._lengths = array("q")
        self._bags = array("q")  # instances of each, where sequences are added in bags
        self._waiting = bytearray()
        self._file: IO[bytes] | None = None
        self._like: NDArray[Any] = np.empty(0, np.int32)

    def __len__(self) -> int:
        return len(self._bags) or len(self._lengths)

    def add(self, values: NDArray[Any]) -> None:
        self._put(values)
        self._lengths.append(len(values))

    def add_bag(self, bag: Ragged) -> None:
        """The instances of a bag."""
        self._put(bag.values)
        self._lengths.frombytes(bag.lengths.tobytes())
        self._bags.append(len(bag))

    def _put(self, values: NDArray[Any]) -> None:
        self._like = values[:0]
        self._waiting += np.ascontiguousarray(values).tobytes()
        if len(self._waiting) > SPILL:
            self._spill()

    def _spill(self) -> None:
        cache.make_ready()
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=cache.cache_directory())  # noqa: SIM115
            self._file.write(self._waiting)
        except OSError as error:
            raise cache.cannot_write(error, len(self._waiting)) from None
        self._waiting = bytearray()

    def ragged(self) -> Ragged:
        """All that was added, as a field; nothing is added after that."""
        ends = offsets_of(self._lengths)
        offsets = (offsets_of(self._bags), ends) if self._bags else (ends,)
        shape = (int(ends[-1]), *self._like.shape[1:])
        if self._file is None:
            return Ragged(np.frombuffer(self._waiting, self._like.dtype).reshape(shape), offsets)
        self._spill()
        with self._file as stream:  # the map keeps its own hold of it
            stream.flush()
            return Ragged(np.memmap(stream, self._like.dtype, mode="c", shape=shape), offsets)
