"""Images with captions: a folder of image files with a table of captions, or arrays.

| data | what belongs together |
|---|---|
| a folder of images with captions.csv (.tsv .jsonl .json .parquet .txt), or that table | a row: an image, its caption |
| .npz with `images` [n, H, W, 3] and `captions` [n], perhaps `parts` [n] | number i of each |
| .npz with `images`, and a table of captions without a column of images beside it | image i and row i |
| (images, captions) in Python | number i of each |
| builtin:shapes, also builtin:shapes,examples=5000,seed=1 | see shapes |

An image may have several captions, in several rows or as a list in one. An image is a sequence of its rows [H, W C],
brightness between 0 and 1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError, MissingColumn, Misused, UnrolledError, UsageError, some
from unrolled.core.front import option
from unrolled.core.opening import exists, shortened
from unrolled.core.task import Guess
from unrolled.data.builtin_sets import BUILTIN, asked, builtin_holds
from unrolled.data.files.csv_table import CsvTable
from unrolled.data.files.file_names import file_of_row
from unrolled.data.files.in_memory import table_of
from unrolled.data.files.npz import load_npz
from unrolled.data.files.pixels import Pixels, coloured, fitted, read_image, white_of
from unrolled.data.files.tables import Table
from unrolled.data.files.text_file import TextFile, named_path
from unrolled.data.formats import ending_of, open_table, suffixes_giving, suffixes_of
from unrolled.data.given_splits import ALL, given_part, sources_by_split
from unrolled.data.look import Look
from unrolled.data.pairs import Pair, open_splits
from unrolled.data.reading import CaptionReading
from unrolled.data.sources.vector_pairs import VectorPairs, sources_alone

IMAGE_COLUMNS = ("image", "file", "filename", "file_name", "path", "img", "picture", "image_name")
CAPTION_COLUMNS = ("caption", "captions", "text", "sentence", "sentences", "description", "comment", "title")
PART_COLUMNS = ("part", "split", "set")
IMAGE_ARRAYS = ("images", "image", "x", "pictures")


def as_rows(image: Pixels) -> NDArray[np.float32]:
    """An image [H, W] or [H, W, C] as its rows [H, W C].

    >>> as_rows(np.full((2, 4, 3), 255, np.uint8)).shape
    (2, 12)
    """
    return (image.reshape(len(image), -1) / np.float32(white_of(image, "the image"))).astype(np.float32)


def open_captions(source: Any, reading: CaptionReading) -> VectorPairs:
    """Whatever was handed over as images with captions."""
    if isinstance(source, str) and source.startswith(BUILTIN):
        return _open_builtin(source, reading)
    if (sources := sources_by_split(source)) is not None:
        return open_splits(source, sources, reading, open_captions)
    if isinstance(source, tuple) and len(source) == 2:
        source = {"images": source[0], "captions": source[1]}
    if isinstance(source, Mapping):
        return _open_arrays(dict(source), "the data", reading)
    if not isinstance(source, str | os.PathLike):
        raise Misused(
            "expected images with captions as a folder, a table of captions, an .npz file, or (images, captions)"
        )
    path = named_path(source)
    if path.is_dir():
        return _open_folder(path, reading)
    TextFile(path).require()
    if ending_of(path) == ".npz":
        return _open_npz(path, reading)
    return _open_table(path, path.parent, reading)


def _pictured(source: VectorPairs, reading: CaptionReading) -> VectorPairs:
    source.channels = 1 if reading.grey else 3
    return source


# ---- files


def _open_folder(folder: Path, reading: CaptionReading) -> VectorPairs:
    endings = suffixes_of("image")
    images = [path for path in folder.rglob("*") if ending_of(path) in endings]
    packs = sorted(path for path in folder.iterdir() if ending_of(path) == ".npz")
    if not images and len(packs) == 1:
        return _open_npz(packs[0], reading)
    if not images:
        raise DataError(f"{folder}: there are no images in this folder; put .png files and captions.csv into it")
    source = _open_table(table_in(folder, reading.target_file, _tables(), "captions"), folder, reading)
    source.notes[f"{folder}: {len(images)} image files"] = None
    return source


def _tables() -> tuple[str, ...]:
    return (*suffixes_giving("table"), ".txt")


def table_in(folder: Path, asked: str | None, endings: Sequence[str], word: str) -> Path:
    """The table in a folder: the one that was asked for, one named after what is in it, or the only one."""
    if asked is not None:
        return Path(asked)
    tables = sorted(path for path in folder.iterdir() if ending_of(path) in endings)
    named = [path for path in tables if path.name.lower().startswith(word[:-1])]
    named = named or [path for path in tables if ending_of(path) != ".txt"]  # any other .txt is a text for people
    if len(named) > 1:
        listed = ", ".join(path.name for path in named)
        raise UsageError(f"{folder}: name the file of {word} with {option('target_file')}, one of: {listed}")
    if not named:
        raise DataError(f"{folder}: there is no table of {word}; add {word}.csv with columns of files and of texts")
    return named[0]


def _table(path: Path) -> Table:
    table = open_table(path)
    if table is not None:
        return table
    file = TextFile(path)
    first = next(iter(file.lines()), "")
    return CsvTable(file, "\t" if "\t" in first else ",")


def column_of(names: Sequence[str], asked: str | None, usual: Sequence[str], asked_by: str, name: str) -> str | None:
    if asked is not None and asked not in names:
        raise MissingColumn(name, asked, option(asked_by), names)
    by_name = {each.lower(): each for each in names}
    return asked or next((by_name[word] for word in usual if word in by_name), None)


def _columns(table: Table, reading: CaptionReading) -> tuple[CaptionReading, str | None, str, str | None]:
    """The reading with its columns settled, and those of image, caption and part."""
    names = table.columns()
    image = column_of(names, reading.source_column, IMAGE_COLUMNS, "source_column", table.name)
    caption = column_of(names, reading.target_column, CAPTION_COLUMNS, "target_column", table.name)
    part = column_of(names, reading.part_column, PART_COLUMNS, "part_column", table.name)
    if caption is None:
        raise UsageError(
            f"{table.name}: name the column of captions with {option('target_column')}; it has {some(names)}"
        )
    settled = {"source_column": image, "target_column": caption, "part_column": part}
    return reading.updated(settled), image, caption, part


def _open_table(path: Path, folder: Path, reading: CaptionReading) -> VectorPairs:
    """Rows that name an image file and say a caption."""
    table = _table(path)
    settled, image, caption, part = _columns(table, reading)
    if image is None:
        raise UsageError(
            f"{table.name}: give the column of image names with {option('source_column')}; it has "
            f"{some(table.columns())}"
        )
    pixels = lru_cache(maxsize=None)(lambda file: fitted(read_image(file, reading.grey), reading.size))
    columns = [image, caption, *([part] if part else [])]

    def read() -> Iterator[Pair]:
        for number, cells in table.rows(columns):
            place = table.place(number)
            try:
                file = _found(folder, path.parent, cells[0], f"{place}, column '{image}'")
                if file is None:
                    raise DataError(f"{place}, column '{image}': there is no image '{shortened(cells[0])}' in {folder}")
                rows = as_rows(pixels(file))
            except DataError as error:
                sentence = str(error)
                source.skip(sentence if sentence.startswith(place) else f"{place}: {sentence}")
                continue
            side = given_part(cells[2], f"{place}, column '{part}'") if part else ALL
            yield from (Pair(rows, text, place, side) for text in _texts(cells[1]))
        source.notes.update(table.notes)

    source = _pictured(VectorPairs(table.name, read, settled, dict(table.notes)), reading)
    return source


def _found(folder: Path, beside: Path, name: Any, place: str) -> Path | None:
    """The image of a row, within the folder, the folder of the table, or their folder `images`."""
    return file_of_row(name, [folder, beside, folder / "images", beside / "images"], place)


def _texts(cell: Any) -> list[Any]:
    """One caption, or a list of them."""
    if isinstance(cell, list | tuple | np.ndarray):
        return list(cell) or [None]
    return [cell]


# ---- arrays


def _open_npz(path: Path, reading: CaptionReading) -> VectorPairs:
    arrays = load_npz(path)
    if not any(name in arrays for name in CAPTION_COLUMNS):
        return _open_beside(arrays, path, reading)
    return _open_arrays(arrays, str(path), reading)


def _open_beside(arrays: dict[str, Any], path: Path, reading: CaptionReading) -> VectorPairs:
    """Images in an array, whose captions are the rows of a table."""
    table = _table(table_in(path.parent, reading.target_file, _tables(), "captions"))
    settled, image, caption, part = _columns(table, reading)
    rows = list(table.rows([caption, *([part] if part else [])]))
    if image is not None:
        raise UsageError(f"{table.name}: column '{image}' names images, but {path} holds them by number")
    given = {"images": _array(arrays, IMAGE_ARRAYS, str(path)), "captions": [cells[0] for _, cells in rows]}
    if part:
        given["parts"] = [cells[1] for _, cells in rows]
    source = _open_arrays(given, str(path), settled, places=[table.place(number) for number, _ in rows])
    source.notes[f"{path}: image i has the caption in row i of {table.name}"] = None
    return source


def _array(arrays: Mapping[str, Any], usual: Sequence[str], name: str) -> Any:
    found = next((arrays[key] for key in usual if key in arrays), None)
    if found is None:
        raise DataError(f"{name}: there is no array {usual[0]}; it has {some(arrays) or 'nothing'}")
    return found


def _pixels(image: Any, place: str) -> Pixels:
    """An image [H, W], [H, W, 1] or [H, W, 3] of an array; numbers between 0 and 1 become bytes."""
    values = np.asarray(image)
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[:, :, 0]
    if values.ndim not in (2, 3) or 0 in values.shape or (values.ndim == 3 and values.shape[2] != 3):
        raise DataError(f"{place}: found an array of shape {list(values.shape)}, expected an image [H, W, 3]")
    if values.dtype in (np.uint8, np.uint16):
        return values
    return (255 / white_of(values, place) * values).round().astype(np.uint8)


def _open_arrays(
    arrays: dict[str, Any], name: str, reading: CaptionReading, places: Sequence[str] | None = None
) -> VectorPairs:
    images, captions = _array(arrays, IMAGE_ARRAYS, name), _array(arrays, CAPTION_COLUMNS, name)
    parts = next((arrays[key] for key in ("parts", *PART_COLUMNS) if key in arrays), None)
    if len(images) != len(captions) or (parts is not None and len(parts) != len(images)):
        raise DataError(
            f"{name}: found {len(images)} images and {len(captions)} captions; give one caption for each image"
        )

    def read() -> Iterator[Pair]:
        for i, (image, caption) in enumerate(zip(images, captions)):
            place = f"{name}, image {i}" if places is None else places[i]
            try:
                pixels = fitted(coloured(_pixels(image, place), reading.grey), reading.size)
            except DataError as error:
                source.skip(str(error))
                continue
            part = ALL if parts is None else given_part(parts[i], place)
            texts = [str(text) if isinstance(text, np.str_) else text for text in _texts(caption)]
            yield from (Pair(as_rows(pixels), text, place, part) for text in texts)

    source = _pictured(VectorPairs(name, read, reading), reading)
    return source


# ---- generated


def _open_builtin(source: str, reading: CaptionReading) -> VectorPairs:
    found = asked(source, "pictures")

    def read() -> Iterator[Pair]:
        for image, caption, place, part, kind in found.read():
            rows = as_rows(fitted(coloured(image, reading.grey), reading.size))
            yield Pair(rows, caption, f"{source}, {place}", part, kind)

    return _pictured(VectorPairs(source, read, reading), reading)


# ---- images alone, and whether some data is such


def pictures_in(source: Any, reading: CaptionReading) -> Iterator[Any]:
    """The images of a folder, an image file, arrays or a table, in their order; captions need not be there."""
    path = Path(source) if isinstance(source, str | os.PathLike) else None
    if isinstance(source, tuple):
        source = {"images": source[0]}
    if path is not None and path.is_file() and ending_of(path) == ".npz":
        source = load_npz(path)
    if isinstance(source, Mapping):
        name = "the data" if path is None else str(path)
        return (_pixels(image, f"{name}, image {i}") for i, image in enumerate(_array(source, IMAGE_ARRAYS, name)))
    is_table = path is not None and path.is_file() and ending_of(path) in _tables()
    table = _table(path) if path is not None and is_table else None if path is not None else table_of(source)
    if table is not None:
        return _pictures_of(table, None if path is None else path.parent, reading)
    return sources_alone(str(source), suffixes_of("image"), lambda: open_captions(source, reading))


def _pictures_of(table: Table, folder: Path | None, reading: CaptionReading) -> Iterator[Any]:
    """The images that the rows of a table name or hold."""
    image = column_of(table.columns(), reading.source_column, IMAGE_COLUMNS, "source_column", table.name)
    if image is None:
        given = option("source_column")
        raise UsageError(f"{table.name}: give the column of image names with {given}; it has {some(table.columns())}")
    for number, (cell,) in table.rows([image]):
        place = f"{table.place(number)}, column '{image}'"
        if not isinstance(cell, str):
            yield _pixels(cell, place)
        elif folder is None and exists(cell) and os.path.isfile(cell):  # rows in memory: their owner names what is read
            yield cell
        elif folder is None:
            raise DataError(f"{place}: there is no image '{shortened(cell)}'")
        elif (file := _found(folder, folder, cell, place)) is None:
            raise DataError(f"{place}: there is no image '{shortened(cell)}' in {folder.absolute()}")
        else:
            yield str(file)


def guess_captions(look: Look) -> Guess | None:
    """Whether some data is images with captions."""
    if look.builtin:
        return Guess(0.95, "it is built-in images with captions") if builtin_holds(look.builtin, "pictures") else None
    if look.arrays:
        return Guess(0.9, "it has images and captions") if _has_both(look.arrays) else None
    if look.folder is not None:
        files = look.beside()
        tables, shows = _tables(), suffixes_of("image", "arrays")
        told = any(file.name.lower().startswith("caption") and ending_of(file) in tables for file in files)
        shown = any(ending_of(file) in shows for file in files) or look.has_folder("images")
        return Guess(0.95, "it is a folder of images with captions") if told and shown else None
    if look.table is None or not look.is_file:
        return None
    try:
        _, image, _, _ = _columns(look.table, CaptionReading())
        first = str(next(look.table.rows([image]), (0, ("",)))[1][0]) if image else ""
    except UnrolledError:
        return None
    return Guess(0.95, "its rows name images and captions") if ending_of(Path(first)) in suffixes_of("image") else None


def _has_both(arrays: Mapping[str, Any]) -> bool:
    return any(key in arrays for key in IMAGE_ARRAYS) and any(key in arrays for key in CAPTION_COLUMNS[:2])
