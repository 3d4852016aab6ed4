"""MATLAB files, written here byte by byte from the description of the format."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from unrolled.core.errors import DataError
from unrolled.data.files.matlab import read_mat

CODES = {"i1": 1, "u1": 2, "i2": 3, "u2": 4, "i4": 5, "u4": 6, "f4": 7, "f8": 9}
CLASSES = {"f8": 6, "f4": 7, "i1": 8, "u1": 9, "i2": 10, "u2": 11, "i4": 12, "u4": 13}


def element(kind: int, content: bytes, order: str = "<") -> bytes:
    if 0 < len(content) <= 4:
        return struct.pack(order + "I", len(content) << 16 | kind) + content.ljust(4, b"\0")
    return struct.pack(order + "II", kind, len(content)) + content + b"\0" * (-len(content) % 8)


def matrix(name: str, value: np.ndarray | list, order: str = "<", stored: str | None = None) -> bytes:
    """A matrix or, for a list, a cell array; `stored` is the type of the numbers in the file, often a smaller one."""
    if isinstance(value, list):
        kind, shape = 1, (1, len(value))
        content = b"".join(matrix("", each, order) for each in value)
    else:
        stored, kind, shape = stored or value.dtype.str[1:], CLASSES[value.dtype.str[1:]], value.shape
        content = element(CODES[stored], value.astype(order + stored).tobytes(order="F"), order)
    head = element(6, struct.pack(order + "II", kind, 0), order)
    head += element(5, np.array(shape, order + "i4").tobytes(), order) + element(1, name.encode(), order)
    whole = head + content
    return struct.pack(order + "II", 14, len(whole)) + whole


def compressed(data: bytes) -> bytes:
    packed = zlib.compress(data)
    return struct.pack("<II", 15, len(packed)) + packed


def header(order: str = "<") -> bytes:
    return b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(order + "H", 0x0100) + (b"IM" if order == "<" else b"MI")


@pytest.mark.parametrize("order", ["<", ">"])
def test_numbers_and_cells_of_either_byte_order(tmp_path: Path, order: str) -> None:
    a = np.arange(6, dtype="u1").reshape(3, 2)
    b = np.array([[1.5, -2.0, 3.0]])
    file = tmp_path / "x.mat"
    file.write_bytes(
        header(order) + matrix("a", a, order) + matrix("cells", [a, b], order) + matrix("s", b * 2, order, stored="i2")
    )
    found = read_mat(file)
    assert list(found) == ["a", "cells", "s"]
    np.testing.assert_array_equal(found["a"], a)
    np.testing.assert_array_equal(found["cells"][0], a)
    np.testing.assert_array_equal(found["cells"][1], b)
    np.testing.assert_array_equal(found["s"], b * 2)


def test_compressed_variables_stand_side_by_side(tmp_path: Path) -> None:
    a = np.eye(5)
    file = tmp_path / "x.mat"
    file.write_bytes(header() + compressed(matrix("first", a)) + compressed(matrix("second", [a, a[:2]])))
    found = read_mat(file)
    np.testing.assert_array_equal(found["first"], a)
    assert [cell.shape for cell in found["second"]] == [(5, 5), (2, 5)]


def test_text_and_structs_are_left_out(tmp_path: Path) -> None:
    text = bytearray(matrix("note", np.zeros((1, 9), "u2")))
    text[16] = 4  # the class of characters
    file = tmp_path / "x.mat"
    file.write_bytes(header() + bytes(text) + matrix("a", np.eye(2)))
    assert list(read_mat(file)) == ["a"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not a MATLAB file"),
        (b"hello" * 100, "not a MATLAB file"),
        (b"\x89HDF\r\n\x1a\n" + b"\0" * 200, "-v7"),
        (header() + matrix("a", np.eye(9))[:-20], "damaged"),
        (header() + compressed(matrix("a", np.eye(9)))[:-9] + b"\0" * 9, "damaged"),
        (header() + matrix("a", np.eye(3)).replace(struct.pack("<II", 9, 72), struct.pack("<II", 99, 72)), "damaged"),
        (header() + struct.pack("<II", 14, 8) + b"\0" * 8, "damaged"),
        (header() + b"\xff" * 300, "damaged"),
    ],
)
def test_what_is_not_such_a_file_is_said(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "bad.mat"
    file.write_bytes(content)
    with pytest.raises(DataError, match=says) as caught:
        read_mat(file)
    assert "bad.mat" in str(caught.value)


def test_every_way_of_cutting_a_file_off_is_noticed(tmp_path: Path) -> None:
    whole = header() + matrix("a", np.eye(3)) + compressed(matrix("c", [np.eye(2)]))
    file = tmp_path / "x.mat"
    for end in range(129, len(whole)):
        file.write_bytes(whole[:end])
        try:
            found = read_mat(file)
        except DataError:
            continue
        assert list(found) == ["a"] and end == 128 + len(matrix("a", np.eye(3)))
