"""Matrices and cell arrays of MATLAB files, version 5 to 7 (`save` without `-v7.3`), and nothing else of them.

A file is a header of 128 bytes and a row of elements: a tag (type, size in bytes) and the content, padded to 8 bytes.
A variable is an element of type matrix, perhaps inside a compressed one; a matrix holds elements again: class,
dimensions, name, and then its numbers, or for a cell array its matrices. "MAT-File Format", The MathWorks.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unrolled.core.errors import DataError
from unrolled.core.opening import read_bytes

MATRIX, COMPRESSED = 14, 15
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
CELL, FIRST_NUMERIC, LAST_NUMERIC = 1, 6, 15  # classes of matrices
COMPLEX = 0x800
LARGEST = 1 << 29  # bytes of a file, and what its compressed variables may come to


class Element(NamedTuple):
    kind: int
    content: memoryview


def read_mat(path: Path) -> dict[str, Any]:
    """The variables by name: arrays, and lists of them for cell arrays; structs, text and the like are left out."""
    data = read_bytes(path, LARGEST)
    if data[:8] == b"\x89HDF\r\n\x1a\n" or b"MATLAB 7.3" in data[:128]:
        raise DataError(f"{path}: MATLAB files of version 7.3 are not supported; save it with -v7")
    order = {b"IM": "<", b"MI": ">"}.get(data[126:128])
    if order is None:
        raise DataError(f"{path}: not a MATLAB file of version 5 to 7")
    try:
        found_in = _elements(memoryview(data)[128:], order, [LARGEST])
        variables = [part.content for part in found_in if part.kind == MATRIX]
        found = dict(_matrix(content, order) for content in variables)
        return {name: value for name, value in found.items() if value is not None}
    except (ValueError, IndexError, KeyError, struct.error, zlib.error, RecursionError) as error:
        raise DataError(f"{path}: the file is damaged or was cut off ({error})") from None


def _elements(data: memoryview, order: str, room: list[int]) -> Iterator[Element]:
    """The elements of some bytes; `room` holds how many more bytes may be unpacked."""
    while len(data):
        kind, size = struct.unpack(order + "II", data[:8].tobytes().ljust(8, b"\0"))
        start = 8
        if kind >> 16:  # four bytes or fewer stand in the tag itself
            kind, size, start = kind & 0xFFFF, kind >> 16, 4
        if start + size > len(data):
            raise ValueError("an element is longer than the file")
        content = data[start : start + size]
        if kind == COMPRESSED:
            unpacker = zlib.decompressobj()
            plain = unpacker.decompress(content, room[0] + 1)
            room[0] -= len(plain)
            if room[0] < 0 or not unpacker.eof:
                raise ValueError(
                    f"a compressed variable is incomplete, or all variables have more than {LARGEST:,} bytes"
                )
            yield from _elements(memoryview(plain), order, room)
            data = data[start + size :]
            continue
        yield Element(kind, content)
        data = data[8 if start == 4 else start + size + -size % 8 :]


def _matrix(data: memoryview, order: str) -> tuple[str, Any]:
    """Name and value of a matrix element; None for what is neither numbers nor cells."""
    flags, dimensions, name, *parts = _elements(data, order, [0])
    bits = struct.unpack(order + "I", flags.content[:4])[0]
    kind = bits & 0xFF
    shape = _numbers(dimensions, order).tolist()
    label = name.content.tobytes().decode("ascii")
    if kind == CELL:
        cells = [_matrix(part.content, order)[1] if len(part.content) else None for part in parts]
        if len(cells) != math.prod(shape):
            raise ValueError(f"{len(cells)} cells instead of {math.prod(shape)}")
        return label, cells
    if not FIRST_NUMERIC <= kind <= LAST_NUMERIC:
        return label, None
    if bits & COMPLEX:
        raise ValueError(f"'{label}' holds complex numbers, which are not supported")
    return label, _numbers(parts[0], order).reshape(shape, order="F")


def _numbers(element: Element, order: str) -> np.ndarray:
    return np.frombuffer(element.content, order + NUMBERS[element.kind])
