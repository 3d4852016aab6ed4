"""Images read as sequences: rows, pixels or patches, from image files in a folder per class or from MNIST's idx files.

    rows      [H, W C]                      patches   [(H / p)(W / p), p p C], from the top left, row by row
    pixels    [H W, C]

Brightness is between 0 and 1 (see pixels).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.data_spec import ReaderSpec
from unrolled.core.errors import DataError, UsageError, some
from unrolled.data.files.file_names import named_files
from unrolled.data.files.pixels import read_image, white_of
from unrolled.data.files.text_file import TextFile
from unrolled.data.given_splits import PARTS, part_in
from unrolled.data.labelled import Labelled, LabelledSource, join_parts
from unrolled.data.reading import Answers, ImageReading, Reading

LARGEST_IDX = 1 << 31  # bytes


@lru_cache(maxsize=8)
def _order(length: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).permutation(length)


def as_sequence(image: NDArray[Any], reading: ImageReading, place: str) -> NDArray[np.float32]:
    """An image [H, W] or [H, W, C] as [T, D]."""
    height, width = image.shape[:2]
    pixels = image.reshape(height, width, -1)  # [H, W, C]
    if reading.grey and pixels.shape[2] >= 3:
        pixels = pixels[:, :, :3] @ np.array([0.299, 0.587, 0.114])  # ITU-R BT.601
        pixels = pixels[:, :, None]
    if reading.order == "rows":
        steps = pixels.reshape(height, -1)
    elif reading.order == "pixels":
        steps = pixels.reshape(height * width, -1)
    else:
        p = reading.patch
        if height % p or width % p:
            raise DataError(f"{place}: an image of {width} x {height} cannot be divided into patches of {p} pixels")
        tiles = pixels.reshape(height // p, p, width // p, p, -1).swapaxes(1, 2)  # [H/p, W/p, p, p, C]
        steps = tiles.reshape(height * width // p**2, -1)
    if reading.permutation is not None:
        steps = steps[_order(len(steps), reading.permutation)]
    return (steps / white_of(image, place)).astype(np.float32)  # [T, D]


def open_images(files: Sequence[Path], folder: Path, name: str, reading: Reading, answers: Answers) -> LabelledSource:
    """Image files, all of one size."""
    found = named_files(files, folder, reading, answers)

    def read() -> Iterator[Labelled]:
        size: tuple[int, ...] | None = None
        for path, answer, group, part in found:
            image = read_image(path, reading.images.grey)
            if size not in (None, image.shape):
                raise DataError(
                    f"{path}: is {image.shape[1]} x {image.shape[0]} pixels, but the previous files are "
                    f"{size[1]} x {size[0]}; resize all to the same size"
                )
            size = image.shape
            yield Labelled(as_sequence(image, reading.images, str(path)), answer, str(path), group, part)

    return LabelledSource(name, "series", answers, read, {}, reading)


# ---- idx files (LeCun's format of MNIST): two zeros, the type, the number of axes, the lengths, the values


def read_idx(path: Path) -> NDArray[np.uint8]:
    data = TextFile(path).whole(LARGEST_IDX)
    if len(data) < 4 or data[:3] != b"\x00\x00\x08" or len(data) < 4 + 4 * data[3]:
        raise DataError(f"{path}: this is not an idx file of bytes; it starts with {data[:4].hex(' ')}")
    shape = np.frombuffer(data, ">u4", data[3], offset=4).tolist()
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * data[3])
    if len(values) != math.prod(shape):
        wanted = " x ".join(map(str, shape))
        raise DataError(f"{path}: has {len(values)} values, expected {wanted}; it was cut off, so copy it again")
    return values.reshape(shape)


def open_idx(folder: Path, reading: Reading, answers: Answers) -> LabelledSource:
    """A folder with train-images-idx3-ubyte and train-labels-idx1-ubyte, likewise t10k- or test-, each also .gz."""
    if answers not in ("class", "none"):
        raise UsageError(f"{folder}: idx files can give classes, not {answers}")
    files = sorted(path for path in folder.iterdir() if "-ubyte" in path.name)
    images = {part_in(path.name): path for path in files if "images" in path.name}
    labels = {part_in(path.name): path for path in files if "labels" in path.name}
    if not images or (answers == "class" and set(images) != set(labels)) or None in images:
        found = some(path.name for path in files)
        raise DataError(
            f"{folder}: expected files such as train-images-idx3-ubyte and train-labels-idx1-ubyte, found {found}"
        )
    parts = {part: _idx_part(images[part], labels.get(part), reading, answers) for part in PARTS if part in images}
    return join_parts(parts, str(folder))


def _idx_part(images: Path, labels: Path | None, reading: Reading, answers: Answers) -> LabelledSource:
    def read() -> Iterator[Labelled]:
        x = read_idx(images)
        y = read_idx(labels) if labels is not None and answers == "class" else None
        if x.ndim != 3 or (y is not None and y.shape != x.shape[:1]):
            raise DataError(f"{images}: found shape {list(x.shape)} and {0 if y is None else len(y)} labels")
        for i, image in enumerate(x):
            place = f"{images}, image {i}"
            yield Labelled(as_sequence(image, reading.images, place), None if y is None else str(y[i]), place)

    return LabelledSource(str(images), "series", answers, read, {}, reading)


READER = ReaderSpec(
    summary="images",
    suffixes=(".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"),
    gives="examples",
    read=open_images,
    many=True,
)
