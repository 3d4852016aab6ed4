"""Sounds and strokes of a pen with the text that they are: what `recognise` learns from.

| data | what belongs together |
|---|---|
| a folder of .wav .flac .ogg files with a table (transcripts.csv: file, text) | a row: a clip, its text |
| a folder of such files in folders by text, or with --pattern for their names | a clip and the name |
| .npz with `audio` or `points` after each other, `offsets` [n+1], `text` [n]; for sound `rate` | number i of each |
| .csv .tsv .jsonl .ndjson .json .parquet with a column of clips, or of strokes (see strokes) | a row |
| {"train": .., "valid": .., "test": ..} | any of these, in the parts that the names say |
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from unrolled.core.errors import DataError, Misused, UnrolledError, UsageError, some
from unrolled.core.front import option
from unrolled.core.opening import shortened
from unrolled.core.task import Guess
from unrolled.data.files.file_names import file_of_row
from unrolled.data.files.in_memory import table_of
from unrolled.data.files.npz import load_npz
from unrolled.data.files.tables import ListTable, Table
from unrolled.data.files.text_file import TextFile, named_path
from unrolled.data.formats import ending_of, is_table, open_table, suffixes_giving, suffixes_of
from unrolled.data.given_splits import ALL, PARTS, given_part, sources_by_split
from unrolled.data.labelled import LabelledSource
from unrolled.data.look import Look
from unrolled.data.pairs import Pair, open_splits
from unrolled.data.readers.arrays import open_arrays
from unrolled.data.readers.sound import features, read_clip
from unrolled.data.reading import Reading, RecognitionReading
from unrolled.data.sources.captions import column_of, table_in
from unrolled.data.sources.open_labelled import open_labelled
from unrolled.data.sources.strokes import (
    PART_COLUMNS,
    STROKE_COLUMNS,
    TEXT_COLUMNS,
    as_strokes,
    headed,
    open_stroke_table,
)
from unrolled.data.sources.vector_pairs import VectorPairs, sources_alone

CLIP_COLUMNS = ("audio", "file", "filename", "file_name", "path", "clip", "wav", "sound")
ARRAYS = ("audio", "points", "strokes", "x")


def open_recognition(source: Any, reading: RecognitionReading) -> VectorPairs:
    """Whatever was handed over as sounds or strokes with their texts."""
    if (sources := sources_by_split(source)) is not None:
        return open_splits(source, sources, reading, open_recognition)
    if isinstance(source, Mapping):
        return _open_arrays(dict(source), "the data", reading)
    if isinstance(source, list):
        return open_stroke_table(ListTable(source), reading)
    if not isinstance(source, str | os.PathLike):
        raise Misused("expected sounds or strokes with texts as a folder, a table, an .npz file, or arrays by name")
    path = named_path(source)
    if path.is_dir():
        return _open_folder(path, reading)
    TextFile(path).require()
    if ending_of(path) == ".npz":
        return _open_arrays(load_npz(path), str(path), reading)
    table = open_table(path)
    if table is None:
        tables = ", ".join(suffixes_giving("table"))
        raise DataError(f"{path}: expected a folder of sounds, an .npz file, or one of {tables}")
    return _open_table(table, path.parent, reading)


# ---- sounds


def _open_folder(folder: Path, reading: RecognitionReading) -> VectorPairs:
    if reading.target_file is None and not any(map(is_table, folder.iterdir())):
        own = Reading(pattern=reading.pattern, sound=reading.sound)
        return _from_labelled(open_labelled(folder, own, "class"), reading, strokes=False)
    path = table_in(folder, reading.target_file, suffixes_giving("table"), "transcripts")
    table = open_table(path)
    if table is None:
        raise DataError(f"{path}: expected a table, one of {', '.join(suffixes_giving('table'))}")
    return _open_table(table, folder, reading)


def _open_table(table: Table, folder: Path, reading: RecognitionReading) -> VectorPairs:
    table = headed(table)
    names = table.columns()
    clip = column_of(names, None, CLIP_COLUMNS, "source_column", table.name)
    clip = reading.source_column or clip
    first = next(iter(table.rows([clip])))[1][0] if clip in names else None
    if not isinstance(first, str) or ending_of(Path(first)) not in suffixes_of("sound"):
        return open_stroke_table(table, reading)
    return _open_clips(table, str(clip), folder, reading)


def _open_clips(table: Table, clip: str, folder: Path, reading: RecognitionReading) -> VectorPairs:
    """Rows that name a clip and say its text."""
    names = table.columns()
    text = column_of(names, reading.target_column, TEXT_COLUMNS, "target_column", table.name)
    part = column_of(names, reading.part_column, PART_COLUMNS, "part_column", table.name)
    if text is None:
        raise UsageError(
            f"{table.name}: name the column of the text with {option('target_column')}; it has {some(names)}"
        )
    columns = [clip, text, *([part] if part else [])]

    def read() -> Iterator[Pair]:
        common: int | None = None
        for number, cells in table.rows(columns):
            place = table.place(number)
            try:
                file = file_of_row(cells[0], [folder], f"{place}, column '{clip}'")
                if file is None:
                    raise DataError(f"{place}, column '{clip}': there is no clip '{shortened(cells[0])}' in {folder}")
                samples, rate = read_clip(file)
            except DataError as error:
                sentence = str(error)
                source.skip(sentence if sentence.startswith(place) else f"{place}: {sentence}")
                continue
            common = common or rate
            if rate != common:
                source.skip(f"{place}: {file} has {rate} samples a second, but those before have {common}")
                continue
            side = given_part(cells[2], f"{place}, column '{part}'") if part else ALL
            yield Pair(features(samples, rate, reading.sound), reading.said(cells[1]), place, side)
        source.notes.update(table.notes)

    settled = reading.updated({"source_column": clip, "target_column": text, "part_column": part})
    source = VectorPairs(table.name, read, settled, dict(table.notes))
    return source


# ---- arrays


def _open_arrays(arrays: dict[str, Any], name: str, reading: RecognitionReading) -> VectorPairs:
    bare = [key for part in PARTS for key in _without(arrays, part)] or list(arrays)
    column = reading.source_column or next((key for key in ARRAYS if key in bare), None)
    target = reading.target_column or next((key for key in TEXT_COLUMNS if key in bare), None)
    if column is None or target is None:
        side, what = ("source", "sounds or strokes") if column is None else ("target", "texts")
        given = option(f"{side}_column")
        raise UsageError(f"{name}: name the array of {what} with {given}; it has {some(arrays)}")
    strokes = "rate" not in arrays
    opened = open_arrays(arrays, name, Reading(column=column, target=target, sound=reading.sound), "class")
    return _from_labelled(opened, reading.updated({"source_column": column, "target_column": target}), strokes)


def _without(arrays: Mapping[str, Any], part: str) -> list[str]:
    """The names of the arrays of a part, x of x_train and train_x."""
    cut = [key.removesuffix(f"_{part}").removeprefix(f"{part}_") for key in arrays]
    return [name for name, key in zip(cut, arrays) if name != key]


def _from_labelled(opened: LabelledSource, reading: RecognitionReading, strokes: bool) -> VectorPairs:
    """Examples with a class, whose name is the text."""

    def read() -> Iterator[Pair]:
        for example in opened.read():
            value = example.input
            if strokes:
                try:
                    value = as_strokes(value, example.place)
                except DataError as error:
                    source.skip(str(error))
                    continue
            yield Pair(value, reading.said(example.answer), example.place, example.part)
        source.notes.update(opened.notes)

    source = VectorPairs(opened.name, read, reading, dict(opened.notes))
    return source


# ---- sources alone, and whether some data is such


def sources_in(source: Any, reading: RecognitionReading) -> Iterator[Any]:
    """The clips of a folder, a clip, or the sources of arrays or a table, in their order; texts need not be there."""
    path = Path(source) if isinstance(source, str | os.PathLike) else None
    if path is not None and path.is_file() and ending_of(path) == ".npz":
        source = load_npz(path)
    if isinstance(source, Mapping) and sources_by_split(source) is None:
        column = reading.source_column or next((key for key in ARRAYS if key in source), None)
        opened = open_arrays(source, str(path or "the data"), Reading(column=column, sound=reading.sound), "none")
        return (example.input for example in opened)
    table = table_of(source) if path is None else open_table(path) if path.is_file() else None
    if table is not None and reading.source_column is not None:
        return _cells_of(table, path and path.parent, reading.source_column)
    if path is None:
        return (pair.source for pair in open_recognition(source, reading))
    return sources_alone(str(source), suffixes_of("sound"), lambda: open_recognition(source, reading))


def _cells_of(table: Table, folder: Path | None, column: str) -> Iterator[Any]:
    """The clips that the rows of a table name, or the strokes that they hold."""
    column_of(table.columns(), column, (), "source_column", table.name)
    for number, (cell,) in table.rows([column]):
        if not isinstance(cell, str) or folder is None:  # rows in memory name what their owner wants to be read
            yield cell
            continue
        place = f"{table.place(number)}, column '{column}'"
        file = file_of_row(cell, [folder], place)
        if file is None:
            raise DataError(f"{place}: there is no clip '{shortened(cell)}' in {folder.absolute()}")
        yield str(file)


def guess_recognition(look: Look) -> Guess | None:
    """Whether some data is clips with a table of transcripts, or strokes with texts."""
    if look.folder is not None:
        told = any(map(is_table, look.beside()))
        heard = any(ending_of(file) in suffixes_of("sound") for file in look.beside())
        return Guess(0.9, "it is a folder of clips with a table of texts") if told and heard else None
    try:
        names = [] if look.table is None else look.table.columns()
        cells = next(look.table.rows(names), (0, ()))[1] if look.table is not None else ()
    except UnrolledError:
        return None
    for name, cell in zip(names, cells):
        if name.lower() in STROKE_COLUMNS[:2] and isinstance(cell, list):
            return Guess(0.9, f"its column '{name}' holds pen strokes")
        named = look.is_file and name.lower() in CLIP_COLUMNS and isinstance(cell, str)
        if named and ending_of(Path(cell)) in suffixes_of("sound"):
            return Guess(0.9, f"its column '{name}' names sound clips")
    return None
