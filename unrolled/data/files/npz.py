"""The arrays of `.npz` files: a zip of `.npy` files, each a header (type, order, shape) and the numbers.

A header may tell of more than there is, and a small zip of more than there is memory: both are refused before anything
is made of them, as are Python objects, which would have to be unpickled.
"""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

from numpy.lib import format as npy
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.core.opening import shortened
from unrolled.data.files.text_file import TextFile

ENDING = ".npy"
UNREADABLE = (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, ValueError)


def memory() -> int:
    """Bytes of memory that this machine has; where that is not told, what few have."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 38


def load_npz(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file by name."""
    try:
        with TextFile(path).open() as handle, zipfile.ZipFile(handle) as archive:
            members = {info.filename.removesuffix(ENDING): info for info in archive.infolist() if _is_array(info)}
            total = sum(info.file_size for info in members.values())
            if total > memory():
                raise DataError(
                    f"{path}: its arrays have {total:,} bytes when unpacked, more than the memory of this "
                    "machine; split it into several files"
                )
            return {name: _array(archive, info, f"{path}, array '{name}'") for name, info in members.items()}
    except UNREADABLE as error:
        raise DataError(f"{path}: not an .npz file, or damaged ({shortened(str(error))}); save it again") from None


def _is_array(info: zipfile.ZipInfo) -> bool:
    return info.filename.endswith(ENDING)


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, place: str) -> NDArray[Any]:
    try:
        with archive.open(info) as stream:
            version = npy.read_magic(stream)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, dtype = read(stream)
            there = info.file_size - stream.tell()
        if dtype.hasobject:
            raise DataError(
                f"{place}: holds Python objects, which are not opened; save series of unequal lengths "
                "concatenated as x [N, D] with offsets [n+1]"
            )
        if there != (told := math.prod(shape) * dtype.itemsize):
            raise DataError(
                f"{place}: its header gives shape {list(shape)}, {told:,} bytes, but the file has {there:,} "
                "bytes; it is damaged or incomplete, so save it again"
            )
        with archive.open(info) as stream:
            return npy.read_array(stream, allow_pickle=False)
    except UNREADABLE as error:
        raise DataError(f"{place}: damaged, or not an array ({shortened(str(error))}); save it again") from None
