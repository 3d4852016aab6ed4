"""Sources of text: whatever a user hands over becomes a stream of pieces or a row of examples, read as often as needed.

Accepted are paths (a text file, a folder of .txt, .csv, .tsv, .jsonl, .json, .parquet, each text form also .gz, .bz2
or .xz), `builtin:NAME`, lists of texts or dicts, arrays and tensors of texts or whole numbers, and data frames. Nothing
is read into memory as a whole; each pass reads the source again.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.core.errors import DataError, Misused, UsageError, listed, some
from unrolled.core.front import option
from unrolled.data.builtin_sets import BUILTIN, asked
from unrolled.data.config import DataConfig
from unrolled.data.files.cell_values import as_text
from unrolled.data.files.column_kinds import choose_column
from unrolled.data.files.folders import is_about
from unrolled.data.files.in_memory import as_array
from unrolled.data.files.joined_columns import with_joined
from unrolled.data.files.tables import Example, FrameTable, ListTable, Table, has_names, table_examples
from unrolled.data.files.text_file import PIECE, TextFile, named_path, notes_of, unpacked
from unrolled.data.formats import is_table, open_table
from unrolled.data.given_splits import ALL
from unrolled.data.sources.folder_table import folder_table

LONGEST_PATH = 4096
EMPTY = hashlib.sha256().hexdigest()


class TextSource:
    """Text that can be read again and again: as `pieces` of a stream or as `examples`.

    A piece is a string, or an array of whole numbers where the data came as numbers; so is the text of an example.
    """

    name: str
    files: list[str]
    numbers = False
    column: str | None = None
    """of a table, where texts are"""

    def __init__(self, examples: str, chosen: str) -> None:
        self.is_stream = examples == "stream"
        self.examples_are = examples
        self.chosen = chosen

    def pieces(self) -> Iterator[Any]:
        raise NotImplementedError

    def apart(self) -> Iterator[Iterator[Any]]:
        """The pieces of each file of a stream."""
        yield self.pieces()

    def examples(self) -> Iterator[Example]:
        raise NotImplementedError

    def place(self, number: int) -> str:
        """Where the example of that number is, as the start of a sentence."""
        raise NotImplementedError

    def digest(self) -> str:
        """A fingerprint of the content."""
        raise NotImplementedError

    def by_split(self) -> Mapping[str, TextSource]:
        """The sources of the splits where they are given; all under ALL where not."""
        return {ALL: self}

    def leave_out_copies(self) -> None:
        """Before reading: of equal files of a stream only the first is read, because a stream is split by position."""

    def notes(self) -> list[str]:
        """What was changed or left out while reading; complete after one pass."""
        return []


class FileSource(TextSource):
    """Plain text files: one stream, or an example a line with the file's name as the only column."""

    def __init__(self, name: str, paths: Sequence[Path], config: DataConfig, skipped: str | None = None) -> None:
        examples, chosen = _choose(config.examples, "stream", "lines", "plain text is a stream", name)
        super().__init__(examples, chosen)
        self.name = name
        self.files = [name] if name.startswith(BUILTIN) else [str(path) for path in paths]
        self._texts = [TextFile(path) for path in paths]
        self._starts: list[int] = []  # lines before each file that a pass has come to
        self._blank = 0
        self._skipped = skipped
        self._copies: list[TextFile] = []
        self._condition = config.condition
        _require_no_columns(f"{name}: plain text has", config.updated({"condition": None}))
        if config.condition is not None and self.is_stream:
            lines = option("examples", "lines")
            raise UsageError(f"{name}: a stream has no classes; with {lines} the condition can be 'file'")
        if config.condition not in (None, "file"):
            raise UsageError(
                f"{name}: lines of plain text have only one column, 'file'; use {option('data.condition', 'file')}"
            )

    def pieces(self) -> Iterator[str]:
        """All files after each other; a file that does not end its last line gets a line end."""
        last, blank = "", True
        for text in self._texts:
            if last and last != "\n":
                yield "\n"
                last = "\n"
            for piece in text.pieces():
                yield piece
                last, blank = piece[-1], blank and piece.isspace()
        self._complain_if_empty(bool(last))
        if blank:
            raise DataError(f"{self.name}: the text is blank, so there is nothing to learn from")

    def examples(self) -> Iterator[Example]:
        number, blank, found = 0, 0, False
        self._starts = []
        for text in self._texts:
            self._starts.append(number)
            label = unpacked(text.path.name).removesuffix(".txt") if self._condition else None
            for line in text.lines():
                number += 1
                if line.strip():
                    found = True
                    yield Example(line, label, number)
                else:
                    blank += 1
        self._blank = blank
        self._complain_if_empty(found)

    def apart(self) -> Iterator[Iterator[str]]:
        return (text.pieces() for text in self._texts)

    def place(self, number: int) -> str:
        i = bisect_left(self._starts, number) - 1
        return f"{self._texts[i].name}, line {number - self._starts[i]}"

    def leave_out_copies(self) -> None:
        if not self.is_stream:
            return
        first = {text.digest(): text for text in reversed(self._texts)} | {EMPTY: None}
        self._copies = [text for text in self._texts if first[text.digest()] not in (text, None)]
        self._texts = [text for text in self._texts if first[text.digest()] in (text, None)]

    def digest(self) -> str:
        found = [f"{unpacked(text.path.name).removesuffix('.txt')} {text.digest()}" for text in self._texts]
        return _digest_of([*found, f"without {len(self._copies)} copies"] if self._copies else found)

    def notes(self) -> list[str]:
        notes = notes_of(self._texts)
        if self._blank:
            notes.append(f"{self._blank} blank lines were skipped")
        if self._copies:
            copies = f"{len(self._copies)} {'file was' if len(self._copies) == 1 else 'files were'} left out"
            notes.append(f"{copies} as a copy of another, such as {self._copies[0].name}")
        return [*notes, self._skipped] if self._skipped else notes

    def _complain_if_empty(self, found: bool) -> None:
        if not found:
            what = "the file is empty" if len(self._texts) == 1 else "all the files in it are empty"
            raise DataError(f"{self.name}: {what}, so there is nothing to learn from")


class TableSource(TextSource):
    """A table: an example a row, or all its texts as one stream with a line end after each."""

    def __init__(self, table: Table, config: DataConfig, also: tuple[str, ...] = ()) -> None:
        examples, chosen = _choose(config.examples, "rows", "stream", "a table or list has one example per row",
                                   table.name, also)  # fmt: skip
        super().__init__(examples, chosen)
        named, table = has_names(table), with_joined(table, config.condition)
        self.name, self.files = table.name, [table.name]
        self._table = table
        self._column = choose_column(table, config.column, config.condition, config.part)
        self._condition, self._part = config.condition, config.part
        self.column = self._column if named else None
        if self.is_stream and (config.condition or config.part):
            rows = f"{option('examples', 'rows')} with {option('data.condition' if config.condition else 'part')}"
            raise UsageError(f"{table.name}: a stream has no {'classes' if config.condition else 'rows'}; use {rows}")

    def pieces(self) -> Iterator[str]:
        held, size = [], 0
        for example in self.examples():
            held.append(example.text + "\n")
            size += len(held[-1])
            if size >= PIECE:
                yield "".join(held)
                held, size = [], 0
        if held:
            yield "".join(held)

    def examples(self) -> Iterator[Example]:
        found = False
        for example in table_examples(self._table, self._column, self._condition, self._part):
            found = True
            as_text(example.text, f"{self._table.place(example.number)}, column '{self._column}'")
            yield example
        if not found:
            raise DataError(f"{self.name}: there are no rows in it; add the data")

    def place(self, number: int) -> str:
        return self._table.place(number)

    def digest(self) -> str:
        return self._table.digest()

    def notes(self) -> list[str]:
        return list(self._table.notes)


class StringSource(TextSource):
    """One text in memory as a stream."""

    def __init__(self, text: str, name: str, config: DataConfig) -> None:
        examples, chosen = _choose(config.examples, "stream", "stream", "one text is a stream", name)
        super().__init__(examples, chosen)
        _require_no_columns(f"{name}: one text has", config)
        self.name, self.files = name, [name]
        self._text = text

    def pieces(self) -> Iterator[str]:
        for start in range(0, len(self._text), PIECE):
            yield self._text[start : start + PIECE]

    def digest(self) -> str:
        return _digest_of([self._text])


class NumberSource(TextSource):
    """Whole numbers as tokens: one array is a stream, several (or the rows of a table of numbers) are examples."""

    numbers = True

    def __init__(self, arrays: Sequence[np.ndarray], is_stream: bool, config: DataConfig) -> None:
        own = "stream" if is_stream else "rows"
        also = () if is_stream else ("lines",)
        name = "the array"
        super().__init__(*_choose(config.examples, own, own, f"these numbers are {own}", name, also))
        _require_no_columns(f"{name}: numbers have", config)
        self.name, self.files = name, [name]
        self._arrays = arrays

    def pieces(self) -> Iterator[np.ndarray]:
        for array in self._arrays:
            for start in range(0, len(array), PIECE):
                yield array[start : start + PIECE].astype(np.int64)

    def examples(self) -> Iterator[Example]:
        for number, array in enumerate(self._arrays, start=1):
            if len(array) == 0:
                raise DataError(f"{self.place(number)}: this row is empty; remove it")
            yield Example(np.asarray(array, np.int64), None, number)

    def place(self, number: int) -> str:
        return f"{self.name}, row {number}"

    def digest(self) -> str:
        result = hashlib.sha256()
        for array in self._arrays:
            result.update(f"{len(array)}:".encode())
            for start in range(0, len(array), PIECE):
                result.update(array[start : start + PIECE].astype(np.int64).tobytes())
        return result.hexdigest()


def _require_no_columns(what: str, config: DataConfig) -> None:
    given = {"column": config.column, "part": config.part, "data.condition": config.condition}
    if any(given.values()):
        raise UsageError(f"{what} no columns, so leave out {listed(option(each) for each in given if given[each])}")


def _choose(asked: str, own: str, other: str, why: str, name: str, also: tuple[str, ...] = ()) -> tuple[str, str]:
    """What an example is, and in words why: what was asked for if this source can do it, its own way under `auto`."""
    if asked == "auto":
        return own, f"{own}, chosen because {why}"
    if asked not in (own, other, *also):
        possible = " or ".join(dict.fromkeys((own, other)))
        raise UsageError(f"{name}: {option('examples', asked)} cannot be used, because {why}; use {possible}")
    return asked, f"{asked}, as asked for"


def _digest_of(parts: Any) -> str:
    result = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        result.update(f"{len(data)}:".encode())
        result.update(data)
    return result.hexdigest()


def open_source(source: Any, config: DataConfig) -> TextSource:
    """Whatever was handed over, as a source; reads no more than the first bytes."""
    if isinstance(source, str) and source.startswith(BUILTIN):
        return _open_builtin(source, config)
    if isinstance(source, str) and ("\n" in source or len(source) > LONGEST_PATH) and not os.path.exists(source):
        raise Misused("a string is read as the path of a file, but this one is a text: pass it in a list, [text]")
    if isinstance(source, str | os.PathLike):
        return _open_path(named_path(source), config)
    source = as_array(source)
    if isinstance(source, np.ndarray):
        return _open_array(source, config)
    if isinstance(source, list | tuple):
        return _open_list(source, config)
    return _open_frame(source, config)


def _open_path(path: Path, config: DataConfig) -> TextSource:
    if path.is_dir():
        joined = folder_table(path)
        return _open_folder(path, config) if joined is None else TableSource(joined, config)
    TextFile(path).require()
    table = open_table(path)
    return FileSource(str(path), [path], config) if table is None else TableSource(table, config)


def _open_folder(folder: Path, config: DataConfig) -> TextSource:
    files = sorted(
        (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")),
        key=lambda path: path.relative_to(folder).as_posix(),
    )
    texts = [path for path in files if unpacked(path.name.lower()).endswith(".txt")]
    if not texts:
        found = [path.relative_to(folder).as_posix() for path in files if not is_about(path)]
        tables = [path for path in files if is_table(path)]
        joined = ", or join those with the same columns into one file" if len(tables) > 1 else ""
        kinds = f"there are no .txt files in this folder; name one of its files{joined}: {some(found)}"
        raise DataError(f"{folder}: {kinds if found else 'the folder is empty; put .txt files into it'}")
    others = len(files) - len(texts)
    skipped = f"{others} files in {folder} that are not .txt were skipped" if others else None
    return FileSource(str(folder), texts, config, skipped)


def _open_builtin(source: str, config: DataConfig) -> TextSource:
    data = asked(source, "text", "rows").read()
    if isinstance(data, str):
        return StringSource(data, source, config)
    if isinstance(data[0], Path):
        return FileSource(source, data, config)
    return TableSource(ListTable(data, source), config)


def _open_array(array: np.ndarray, config: DataConfig) -> TextSource:
    if array.dtype.kind in "UO":
        return _open_list(array.tolist() if array.ndim == 1 else [], config)
    if array.dtype.kind in "iu" and array.ndim in (1, 2) and array.size:
        return NumberSource([array] if array.ndim == 1 else list(array), array.ndim == 1, config)
    raise DataError(
        f"an array of shape {array.shape} and type {array.dtype} is not text; give texts, or integers in one "
        "row (a stream) or in a table (one example per row)"
    )


def _open_list(rows: Sequence[Any], config: DataConfig) -> TextSource:
    if not rows:
        raise DataError("the list of texts is empty, so there is nothing to learn from")
    first = rows[0]
    if isinstance(first, str | dict):
        return TableSource(ListTable(rows), config, also=("lines",))
    arrays = [_as_numbers(row, number) for number, row in enumerate(rows, start=1)]
    if all(array.ndim == 0 for array in arrays):
        return NumberSource([np.array(arrays, np.int64)], True, config)
    for number, array in enumerate(arrays, start=1):
        if array.ndim != 1:
            raise DataError(f"the list, row {number}: found {array.ndim} axes, expected one row of integers")
    return NumberSource(arrays, False, config)


def _as_numbers(row: Any, number: int) -> np.ndarray:
    try:
        array = np.asarray(as_array(row))
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind in "iu" or array.size == 0:
        return array.astype(np.int64)
    raise DataError(f"the list, row {number}: found {type(row).__name__}, expected texts, dicts or integers")


def _open_frame(source: Any, config: DataConfig) -> TextSource:
    import narwhals

    try:
        frame = narwhals.from_native(source, eager_only=True, allow_series=True)
    except TypeError:
        raise Misused(
            f"text cannot be read from a {type(source).__name__}; give a path, a list of texts, an array, a tensor or "
            "a data frame"
        ) from None
    if isinstance(frame, narwhals.Series):
        frame = frame.alias(frame.name or "text").to_frame()
    return TableSource(FrameTable(frame), config)
