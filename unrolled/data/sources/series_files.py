"""A table in each file, such as one recording of a sensor: a row is a step, a column a channel, and the folder or the
name of the file gives the class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from unrolled.core.errors import DataError, MissingColumn, UsageError, some
from unrolled.core.front import option
from unrolled.data.files.cell_values import is_gap, is_number
from unrolled.data.files.file_names import named_files
from unrolled.data.files.missing_values import fill
from unrolled.data.files.tables import Table
from unrolled.data.labelled import Labelled, LabelledSource
from unrolled.data.reading import Answers, Reading, as_names, names_of
from unrolled.data.sources.labelled_table import TIMES, table_in
from unrolled.data.sources.row_values import step_value


def open_series_files(
    files: Sequence[Path], folder: Path, name: str, reading: Reading, answers: Answers
) -> LabelledSource:
    """Files of tables that have the same columns of numbers; a column of times is not a channel."""
    found = named_files(files, folder, reading, answers)
    first = _table(files[0])
    channels = names_of(reading.column, first.columns()) or _channels(first)
    settled = reading.updated({"column": as_names(channels), "layout": "file"})

    def read() -> Iterator[Labelled]:
        for path, answer, group, part in found:
            table = _table(path)
            if missing := [channel for channel in channels if channel not in table.columns()]:
                raise MissingColumn(table.name, missing[0], option("column"), table.columns())
            if reading.column is None and (more := [c for c in _channels(table) if c not in channels]):
                raise DataError(f"{path}: has a column '{more[0]}', and {files[0]} has none; name the channels with "
                                f"{option('column')}")  # fmt: skip
            steps = [
                [step_value(cell, reading.missing, table.place(number), c) for cell, c in zip(cells, channels)]
                for number, cells in table.rows(channels)
            ]
            if not steps:
                raise DataError(f"{path}: there are no rows in it; remove the file or add the data")
            x = fill(np.array(steps), reading.missing, str(path))  # [T, D]
            yield Labelled(x, answer, str(path), group, part)

    source = LabelledSource(name, "series", answers, read, {}, settled)
    if reading.column is None:
        source.notes[f"{folder}: every file is a series with the columns {some(channels)} as channels"] = None
    return source


def _table(path: Path) -> Table:
    table = table_in(path)
    if table is None:
        raise UsageError(f"{path}: is not a table; give files of one kind")
    return table


def _channels(table: Table) -> list[str]:
    """The columns that begin with a number, without those that are called a time."""
    names = table.columns()
    cells = next(table.rows(names), (0, ()))[1]
    numbers = [name for name, cell in zip(names, cells) if is_number(cell) or is_gap(cell)]
    channels = [name for name in numbers if name.lower() not in TIMES] or numbers
    if not channels:
        raise DataError(f"{table.name}: there is no column of numbers in it; a file of a folder of tables is a series")
    return channels
