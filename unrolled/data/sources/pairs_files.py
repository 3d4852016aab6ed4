"""Readers of pairs: tables, lines with a tab, two line-aligned files, folders of such."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from typing import Any

from unrolled.core.errors import DataError, MissingColumn, UsageError, nearest, some
from unrolled.core.front import option
from unrolled.data.files.csv_table import CsvTable
from unrolled.data.files.in_memory import table_of, values_of
from unrolled.data.files.tables import ListTable, RecordTable, Table, frame_table
from unrolled.data.files.text_file import TextFile, unpacked
from unrolled.data.formats import ending_of, is_table, open_table, suffixes_giving
from unrolled.data.given_splits import ALL, PARTS, given_part, part_in
from unrolled.data.pairs import Pair, PairSource, join_parts
from unrolled.data.reading import PairReading
from unrolled.data.sources.lexicon import is_lexicon, open_lexicon

SOURCES = ("source", "src", "from", "input", "original", "question")
TARGETS = ("target", "tgt", "to", "output", "translation", "translated", "answer")
LANGUAGES = (
    "ar", "bg", "cs", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "he", "hi", "hr", "hu", "id", "it", "ja",
    "ko", "lt", "lv", "nl", "no", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "th", "tr", "uk", "vi", "zh",
    "english", "french", "german", "spanish", "italian", "portuguese", "dutch", "russian", "polish", "czech",
    "swedish", "finnish", "turkish", "greek", "chinese", "japanese", "korean",
)  # fmt: skip
ROWS, FEW, UNLIKE = 300, 8, 0.1  # that are looked at, at least, and share of them that may be like the first
TABBED = (".tsv", ".txt", ".tab")  # lines of source, tab and target, whose quotes are letters like others


def open_path(path: Path, reading: PairReading) -> PairSource:
    """A file or a folder, by what is in it."""
    if path.is_dir():
        return open_folder(path, reading)
    TextFile(path).require()
    if reading.target_file is not None:
        return open_aligned(path, Path(reading.target_file), reading)
    table = None if ending_of(path) in TABBED else open_table(path)
    if table is not None:
        return open_columns(table, reading)
    beside = _beside(path, reading)
    if beside is not None:
        return open_aligned(path, beside, reading)
    return open_lexicon(path, reading) if is_lexicon(path) else open_tabbed(path, reading)


def open_rows(source: Any, reading: PairReading) -> PairSource:
    """A list of dicts, or a data frame."""
    if isinstance(source, list | tuple):
        if not source:
            raise DataError("the list of pairs is empty, so there is nothing to learn from")
        return open_columns(ListTable(source), reading)
    return open_columns(frame_table(source, "pairs", "a list of (source, target)"), reading)


# ---- columns


def sides(names: Sequence[str]) -> tuple[str, str] | None:
    """The columns of source and target by their names; None: the names do not tell.

    >>> sides(["id", "target", "source"]), sides(["de", "en"]), sides(["word", "count"])
    (('source', 'target'), ('de', 'en'), None)
    """
    small = {name.strip().lower(): name for name in names}
    source, target = ([small[word] for word in known if word in small] for known in (SOURCES, TARGETS))
    if source and target:
        return source[0], target[0]
    spoken = [name for name in names if name.strip().lower() in LANGUAGES]
    return (spoken[0], spoken[1]) if len(spoken) == 2 else None


def has_header(cells: Sequence[str], reading: PairReading) -> bool:
    """Whether the first row names columns: where a name was asked for it must, otherwise known names tell."""
    asked = [name for name in (reading.source_column, reading.target_column, reading.part_column) if name is not None]
    return any(not name.isdigit() for name in asked) if asked else sides(cells) is not None


def is_unlike_others(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row has letters alone where others of a column have digits or signs, as names of columns do.

    >>> is_unlike_others([["raw", "clean"], *[["(030) 12", "+4930 12"]] * 9]), is_unlike_others([["a", "b"]] * 9)
    (True, False)
    """
    first, below = (rows[0], rows[1:]) if rows else ((), ())
    if len(below) < FEW or not all(map(_is_plain, first)):
        return False
    columns = zip(*(row for row in below if len(row) == len(first)))
    return any(sum(map(_is_plain, column)) < UNLIKE * len(column) for column in columns)


def _is_plain(cell: str) -> bool:
    return cell.replace("_", "").replace(" ", "").isalpha()


def choose(names: Sequence[str], reading: PairReading, name: str) -> PairReading:
    """The reading with both columns settled: asked for, told by their names, or the first two."""
    asked = {"source": reading.source_column, "target": reading.target_column, "part": reading.part_column}
    for side, wanted in asked.items():
        if wanted is not None and wanted not in names:
            raise MissingColumn(name, wanted, option(f"{side}_column"), names)
    left = [each for each in names if each not in asked.values()]
    if len(left) < sum(asked[side] is None for side in ("source", "target")):
        raise DataError(f"{name}: a pair needs two columns, found {some(names)}")
    guess = sides(left)
    source = asked["source"] or (guess[0] if guess and asked["target"] is None else left[0])
    target = asked["target"] or (
        guess[1] if guess and asked["source"] is None else next(n for n in left if n != source)
    )
    if source == target:
        raise UsageError(f"{name}: column '{source}' cannot be both the source and the target")
    return reading.updated({"source_column": source, "target_column": target})


def _told(settled: PairReading, asked: PairReading, name: str) -> dict[str, None]:
    """A note on columns that were chosen, not asked for."""
    if asked.source_column is not None and asked.target_column is not None:
        return {}
    return {f"{name}: the source is column '{settled.source_column}', the target '{settled.target_column}'": None}


def open_columns(table: Table, reading: PairReading) -> PairSource:
    """Two columns of a table."""
    if isinstance(table, CsvTable):
        first = table.first()
        if first and not has_header(first, reading) and not is_unlike_others(table.first_rows(ROWS)):
            table = table.without_header()
    settled = choose(table.columns(), reading, table.name)
    wanted = [settled.source_column, settled.target_column, *([settled.part_column] if settled.part_column else [])]
    columns = [str(name) for name in wanted]

    def read() -> Iterator[Pair]:
        rows = _records(table, columns) if isinstance(table, RecordTable) else table.rows(columns)
        for number, cells in rows:
            place = table.place(number)
            part = given_part(cells[2], f"{place}, column '{columns[2]}'") if len(cells) > 2 else ALL
            yield Pair(cells[0], cells[1], place, part)
        source.notes.update(table.notes)

    source = PairSource(table.name, read, settled, {**table.notes, **_told(settled, reading, table.name)})
    return source


def _records(table: RecordTable, columns: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Rows of named values; one that is not there is None, so that the pair can be told as missing a side."""
    for number, record in table.records():
        values = record if isinstance(record, dict) else {}
        yield number, tuple(values.get(column) for column in columns)


# ---- lines


def open_tabbed(path: Path, reading: PairReading) -> PairSource:
    """Lines of source, a tab and target (and perhaps more columns); a first line of known names is a header."""
    file = TextFile(path)
    first = next((line for line in file.lines() if line.strip()), "").split("\t")
    if first == [""]:
        raise DataError(f"{path}: the file is empty, expected lines of a source, a tab and a target")
    if len(first) < 2:
        raise DataError(
            f"{path}, line 1: found no tab between source and target; if the targets are in another file, name it with "
            f"{option('target_file')}"
        )
    named = has_header(first, reading)
    names = [cell.strip() for cell in first] if named else [str(i) for i in range(1, len(first) + 1)]
    settled = choose(names, reading, str(path))
    wanted = (settled.source_column, settled.target_column, settled.part_column)
    at = [names.index(name) for name in wanted if name is not None]

    def read() -> Iterator[Pair]:
        blank, skip = 0, named
        for number, line in enumerate(file.lines(), start=1):
            if not line.strip():
                blank += 1
                continue
            if skip:
                skip = False
                continue
            cells: list[str | None] = [*line.split("\t"), *[None] * len(names)]
            place = f"{path}, line {number}"
            part = given_part(cells[at[2]], place) if len(at) > 2 else ALL
            yield Pair(cells[at[0]], cells[at[1]], place, part)
        if blank:
            source.notes[f"{path}: {blank} blank lines were skipped"] = None
        source.notes.update(file.notes)

    source = PairSource(str(path), read, settled, _told(settled, reading, str(path)))
    return source


def open_aligned(path: Path, other: Path, reading: PairReading) -> PairSource:
    """Two files whose lines of one number belong together; blank on both sides is no pair."""
    files = [TextFile(path), TextFile(other)]
    files[1].require()

    def read() -> Iterator[Pair]:
        blank = 0
        for number, (line, answer) in enumerate(zip_longest(files[0].lines(), files[1].lines()), start=1):
            if line is None or answer is None:
                longer, shorter = (other, path) if line is None else (path, other)
                raise DataError(
                    f"{longer}, line {number}: {shorter} ends before this line; both need the same number of lines"
                )
            if not line.strip() and not answer.strip():
                blank += 1
                continue
            yield Pair(line, answer, f"{path} and {other.name}, line {number}")
        if blank:
            source.notes[f"{blank} lines that are blank on both sides were skipped"] = None
        source.notes.update(files[0].notes | files[1].notes)

    endings = {"source_column": ending_of(path)[1:] or None, "target_column": ending_of(other)[1:] or None}
    settled = reading.updated(endings | {"target_file": None})
    source = PairSource(str(path), read, settled)
    return source


def _beside(path: Path, reading: PairReading) -> Path | None:
    """`test.en` for `test.de` where the targets of a run end in `en`, packed or not; None: there is none."""
    if reading.target_column is None or ending_of(path)[1:] != reading.source_column:
        return None
    stem = unpacked(path.name).removesuffix(f".{reading.source_column}")
    found = [each for each in path.parent.glob(f"{stem}.{reading.target_column}*") if
             unpacked(each.name) == f"{stem}.{reading.target_column}"]  # fmt: skip
    if not found:
        raise DataError(
            f"{path}: the file of targets {stem}.{reading.target_column} is missing; put it into the same folder"
        )
    return found[0]


# ---- sources alone


def sources_in(path: Path, reading: PairReading) -> Iterator[tuple[int, str]]:
    """The sources of a file, to write for, with their lines or rows: of a table the source column or its only one, of
    other files every line. What is missing is an empty text."""
    if is_table(path) and ending_of(path) not in TABBED:
        yield from _table_sources(path, reading)
        return
    at, skip = 0, False
    for number, line in enumerate(TextFile(path).lines(), start=1):
        if ending_of(path) != ".tsv":
            yield number, line
            continue
        cells = line.split("\t")
        if number == 1:
            wanted = str(reading.source_column)
            skip = has_header(cells, reading) or sides(cells) is not None
            at = cells.index(wanted) if wanted in cells else int(wanted) - 1 if wanted.isdigit() else 0
        if not (skip and number == 1):
            yield number, cells[at] if at < len(cells) else ""


def sources_of(source: Any, reading: PairReading) -> list[str]:
    """The sources of pairs in memory: bare texts, (source, target), or the source column of rows."""
    if isinstance(source, str | PathLike):
        return [text for _, text in sources_in(Path(source), reading)]
    if isinstance(source, Mapping):
        parts = {given_part(name, "the data"): each for name, each in source.items()}
        return [text for each in parts.values() for text in sources_of(each, reading)]
    table = table_of(source)
    if table is not None:
        return [text for _, text in _column_of_sources(table, reading, table.name)]
    return [_source_alone(row, number) for number, row in enumerate(values_of(source), start=1)]


def _source_alone(row: Any, number: int) -> str:
    text = row[0] if isinstance(row, list | tuple) and len(row) == 2 else row
    if not isinstance(text, str):
        raise DataError(f"example {number}: found a {type(row).__name__}, expected a text or (source, target)")
    return text


def table_of_pairs(path: Path, reading: PairReading) -> Table | None:
    """The table in a file as a run reads it: where that numbered its columns, a first line without known names is a
    row like others."""
    table = open_table(path)
    if isinstance(table, CsvTable) and str(reading.source_column).isdigit() and sides(table.first()) is None:
        return table.without_header()
    return table


def _table_sources(path: Path, reading: PairReading) -> Iterator[tuple[int, str]]:
    table = table_of_pairs(path, reading)
    assert table is not None
    yield from _column_of_sources(table, reading, str(path))


def _column_of_sources(table: Table, reading: PairReading, path: str) -> Iterator[tuple[int, str]]:
    wanted = reading.source_column
    names = table.columns()
    column = names[0] if len(names) == 1 and names[0] != reading.target_column else wanted
    if column not in names and str(wanted).isdigit() and int(str(wanted)) <= len(names):
        column = names[int(str(wanted)) - 1]  # the run has numbers, this table has names
    if column not in names:
        raise MissingColumn(path, str(column), option("source_column"), names)
    rows = _records(table, [column]) if isinstance(table, RecordTable) else table.rows([column])
    for number, (cell, *_) in rows:
        yield number, "" if cell is None else str(cell)


# ---- folders


def open_folder(folder: Path, reading: PairReading) -> PairSource:
    """Files by part: `train.tsv, valid.tsv, test.tsv`, or line-aligned `train.de, train.en, val.de, ..`."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    held: dict[str, dict[str, dict[str, Path]]] = {part: {} for part in PARTS}
    for path in files:
        name = unpacked(path.name)
        stem, part = name.rpartition(".")[0] or name, part_in(name)
        if part is not None:
            held[part].setdefault(stem, {})[ending_of(path)[1:]] = path
    if not held["train"]:
        found = ", ".join(path.name for path in files[:5]) or "nothing"
        raise DataError(
            f"{folder}: found {found}, but no file of pairs whose name starts with train, such as train.tsv"
        )
    chosen = {part: _one_set(folder, part, stems, reading) for part, stems in held.items() if stems}
    tables = [ending for ending in chosen["train"] if f".{ending}" in (*suffixes_giving("table"), *TABBED)]
    if tables:
        return join_parts({part: open_path(_file(folder, part, of, tables[0]), reading) for part, of in chosen.items()},
                          str(folder))  # fmt: skip
    settled = _endings(folder, sorted(chosen["train"]), reading)
    ends = str(settled.source_column), str(settled.target_column)
    pairs = {
        part: open_aligned(_file(folder, part, of, ends[0]), _file(folder, part, of, ends[1]), settled)
        for part, of in chosen.items()
    }
    whole = join_parts(pairs, str(folder))
    whole.reading = settled
    whole.notes.update(_told(settled, reading, str(folder)))
    return whole


def _one_set(folder: Path, part: str, stems: dict[str, dict[str, Path]], reading: PairReading) -> dict[str, Path]:
    """The files of a part, by ending."""
    if part == "test" and reading.test_set is not None:
        if reading.test_set not in stems:
            raise UsageError(f"{folder}: there is no test set '{reading.test_set}'; {nearest(reading.test_set, stems)}")
        return stems[reading.test_set]
    if len(stems) > 1:
        hint = f"choose one with {option('test_set')}" if part == "test" else "keep one of them"
        raise UsageError(f"{folder}: several files are for the {part} split: {some(stems)}; {hint}")
    return next(iter(stems.values()))


def _endings(folder: Path, endings: list[str], reading: PairReading) -> PairReading:
    """Which endings are source and target."""
    asked = reading.source_column, reading.target_column
    if None in asked and len(endings) > 2:
        raise UsageError(
            f"{folder}: its files end in {some(endings)}; choose sources and targets with "
            f"{option('source_column', endings[0])} and {option('target_column', endings[1])}"
        )
    return choose(endings, reading, str(folder))


def _file(folder: Path, part: str, of: dict[str, Path], ending: str) -> Path:
    if ending not in of:
        some = next(iter(of.values())).name
        raise DataError(f"{folder}: for the {part} split there is {some}, but no file that ends in .{ending}")
    return of[ending]
