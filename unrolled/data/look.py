"""One look at a source: what it is, its files, its columns and its beginning. Every task scores what was seen.

A file is opened once for it, and no more of a table than its first rows is read. What cannot be read is no error yet:
preparing the data reports what is wrong with it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from unrolled.core.errors import UnrolledError
from unrolled.data.builtin_sets import BUILTIN
from unrolled.data.files.csv_table import CsvTable
from unrolled.data.files.folders import only_file
from unrolled.data.files.in_memory import table_of
from unrolled.data.files.json_values import json_of
from unrolled.data.files.npz import load_npz
from unrolled.data.files.tables import RecordTable, Table
from unrolled.data.files.text_file import TextFile, named_path
from unrolled.data.formats import ending_of
from unrolled.data.given_splits import sources_by_split
from unrolled.data.readers.jsonl import JsonlTable
from unrolled.data.sources.folder_table import folder_table
from unrolled.data.sources.labelled_table import table_in
from unrolled.data.sources.open_labelled import beside

ROWS = 1000  # of a table, and lines of a text, that are looked at
CHARACTERS = 1 << 24  # of them together, about


@dataclass(frozen=True, eq=False)
class Look:
    """What was seen of a source; what it does not have is empty."""

    source: Any
    name: str
    builtin: str = ""
    """the name of built-in data, without its settings"""
    suffix: str = ""
    """of a file, `.csv` of a.csv and of the packed a.csv.gz"""
    folder: Path | None = None
    files: tuple[Path, ...] = ()
    """all below the folder, in order"""
    table: Table | None = None
    """the columns and the first rows of a file, a list of dicts or a data frame, in memory"""
    lines: tuple[str, ...] = ()
    """the first ones of a file of text"""
    arrays: Mapping[str, Any] = field(default_factory=dict)
    splits: Mapping[str, Look] = field(default_factory=dict)
    """train, valid and test, where the source names them"""
    _known: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @property
    def is_file(self) -> bool:
        return self.folder is None and isinstance(self.source, str | os.PathLike) and not self.builtin

    @property
    def first(self) -> Look:
        """The look at the first split, or this one."""
        return next(iter(self.splits.values()), self).first if self.splits else self

    def beside(self) -> list[Path]:
        """The files of the folder itself, without those of folders in it."""
        return [path for path in self.files if path.parent == self.folder]

    def has_folder(self, name: str) -> bool:
        """Whether there are files in a folder of that name within the folder."""
        return self.folder is not None and any(path.parent == self.folder / name for path in self.files)

    def once(self, key: Hashable, find: Callable[[], Any]) -> Any:
        """What several tasks ask, found when it is first asked for."""
        if key not in self._known:
            self._known[key] = find()
        return self._known[key]


def look(source: Any) -> Look:
    """What there is to see of whatever was handed over; a look is itself."""
    if isinstance(source, Look):
        return source
    source = only_file(source)
    if isinstance(source, str) and source.startswith(BUILTIN):
        return Look(source, source, builtin=source.removeprefix(BUILTIN).split(",")[0])
    if isinstance(source, str | os.PathLike):
        try:
            return _at(named_path(source))
        except (UnrolledError, OSError):
            return Look(source, str(source), suffix=ending_of(Path(source)))
    if isinstance(source, Mapping) and (splits := _splits(source)):
        return Look(source, "the data", splits=splits)
    if isinstance(source, Mapping | tuple):
        arrays = source if isinstance(source, Mapping) else dict(zip(("x", "y"), source))
        return Look(source, "the data", arrays=arrays)
    try:
        table = table_of(source)
    except UnrolledError:
        table = None
    return Look(source, "the data", table=None if table is None else _first_rows(table))


def _at(path: Path) -> Look:
    if path.is_dir():
        return _in_folder(path)
    if not path.exists():
        pair = beside(path)
        return Look(path, str(path), suffix=ending_of(path), splits={part: _at(file) for part, file in pair.items()})
    suffix = ending_of(path)
    if suffix == ".npz":
        return Look(path, str(path), suffix=suffix, arrays=_seen(lambda: load_npz(path)) or {})
    file = ReadOnce(path)
    try:
        table = _seen(lambda: table_in(path, file))
        if table is None and suffix == ".json":
            values = _seen(lambda: json_of(file.text(), file.name, None))
            return Look(path, str(path), suffix=suffix, splits=_splits(values))
        lines = file.first() if table is None or isinstance(table, CsvTable | JsonlTable) else ()
        return Look(path, str(path), suffix=suffix, table=table and _first_rows(table), lines=lines)
    finally:
        file.close()


def _in_folder(folder: Path) -> Look:
    files = sorted((path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")),
                   key=lambda path: path.relative_to(folder).as_posix())  # fmt: skip
    splits = _splits(folder)
    joined = None if splits else folder_table(folder)
    if joined is not None:
        return Look(folder, str(folder), suffix=ending_of(files[0]), table=_first_rows(joined))
    return Look(folder, str(folder), folder=folder, files=tuple(files), splits=splits)


def _splits(source: Any) -> dict[str, Look]:
    """The splits that a mapping or a folder names."""
    found = _seen(lambda: sources_by_split(source)) or {}
    return {part: look(each) for part, each in found.items()}


def _seen(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (UnrolledError, OSError):
        return None


class ReadOnce(TextFile):
    """A file that is opened once, however often its lines are asked for."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._lines: list[str] = []
        self._left = super().lines()
        self._end: UnrolledError | None = None

    def lines(self) -> Iterator[str]:
        for number in count():
            if number == len(self._lines) and not self._read():
                return
            yield self._lines[number]

    def first(self) -> tuple[str, ...]:
        """The first lines, of a file that is text."""
        return tuple(_kept(self.lines(), len)[0])

    def close(self) -> None:
        self._left = iter(())  # which ends the pass, and with it closes the file

    def _read(self) -> bool:
        """Whether there is another line."""
        if self._end is not None:
            raise self._end
        try:
            self._lines.append(next(self._left))
        except StopIteration:
            return False
        except UnrolledError as error:
            self._end = error
            raise
        return True


def _kept(rows: Iterable[Any], size: Callable[[Any], int]) -> tuple[list[Any], UnrolledError | None]:
    """The first rows, and what was wrong with the one after them."""
    kept: list[Any] = []
    left = CHARACTERS
    try:
        for row in rows:
            kept.append(row)
            left -= size(row)
            if len(kept) == ROWS or left <= 0:
                break
    except UnrolledError as error:
        return kept, error
    return kept, None


def _characters(numbered: tuple[int, Any]) -> int:
    row = numbered[1]
    cells = row.values() if isinstance(row, Mapping) else row if isinstance(row, tuple | list) else (row,)
    return sum(len(cell) if isinstance(cell, str | list) else 1 for cell in cells)


def _first_rows(table: Table) -> Table:
    return FirstRecords(table) if isinstance(table, RecordTable) else FirstRows(table)


class FirstRecords(RecordTable):
    """The first rows of a table of named values; what is wrong below them is reported where it stands."""

    def __init__(self, table: RecordTable) -> None:
        super().__init__(table.name, dict(table.notes))
        self._records, self._end = _kept(table.records(), _characters)
        self._place = table.place

    def records(self) -> Iterator[tuple[int, Any]]:
        yield from self._records
        if self._end is not None:
            raise self._end

    def place(self, number: int) -> str:
        return self._place(number)


class FirstRows:
    """The first rows of a table with a header; what is wrong below them is reported where it stands."""

    def __init__(self, table: Table) -> None:
        self.name, self.place, self.digest = table.name, table.place, table.digest
        self._names: list[str] = []
        self._rows: list[Any] = []
        try:
            self._names = table.columns()
            self._rows, self._end = _kept(table.rows(self._names), _characters)
        except UnrolledError as error:
            self._end = error
        self.notes = dict(table.notes)

    def columns(self) -> list[str]:
        if not self._names and self._end is not None:
            raise self._end
        return self._names

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        places = {name: place for place, name in reversed(list(enumerate(self.columns())))}
        at = [places[column] for column in columns]
        for number, cells in self._rows:
            yield number, tuple(cells[i] for i in at)
        if self._end is not None:
            raise self._end
