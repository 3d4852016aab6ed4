"""Tables in .csv and .tsv files."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import Any

from unrolled.core.errors import DataError, some
from unrolled.data.files.cell_values import shown
from unrolled.data.files.text_file import TextFile

LARGEST_CELL = 1 << 26  # characters; more is taken for a quote that is never closed


class CsvTable:
    """Comma- or tab-separated values with a header line and double quotes; every row as wide as the header."""

    def __init__(self, file: TextFile, delimiter: str) -> None:
        self.name, self.notes = file.name, file.notes
        self._file, self._delimiter = file, delimiter

    def columns(self) -> list[str]:
        filled = ((line, cells) for line, cells in self._records() if any(cells))
        for line, header in filled:
            names = self._checked(header, line)
            if len(names) == 1 and (below := next(filled, None)) is not None:  # or a title above the header
                self._require_width(*below, names)
            return names
        raise DataError(f"{self.name}: the file is empty, expected a header line and rows")

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        header = self.columns()
        at = {name: i for i, name in enumerate(header)}
        chosen = [at[column] for column in columns]
        blank, found, first = 0, False, True
        for line, cells in self._records():
            if not any(cells):
                blank += 1
                continue
            if first:  # the header
                first = False
                continue
            self._require_width(line, cells, header)
            if len(cells) > 1 and cells[0].strip() == header[0] and [cell.strip() for cell in cells] == header:
                raise DataError(f"{self.place(line)}: this row repeats the header; remove it")
            found = True
            yield line, tuple(cells[i] for i in chosen)
        if not found:
            raise DataError(
                f"{self.name}: there is a header ({some(header)}) but there are no rows below it; add the data"
            )
        if blank:
            self.notes[f"{self.name}: {blank} blank lines were skipped"] = None

    def _require_width(self, line: int, cells: list[str], header: list[str]) -> None:
        if len(cells) != len(header):
            raise DataError(
                f"{self.place(line)}: found {len(cells)} cells, but the header has {len(header)} "
                f"({some(header)}); put cells that contain {_sign(self._delimiter)} in double quotes, and "
                "remove lines above the header"
            )

    def place(self, number: int) -> str:
        return f"{self.name}, line {number}"

    def digest(self) -> str:
        return self._file.digest()

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Rows with the number of the line they begin on."""
        lines = (line + "\n" for line in self._file.lines())
        csv.field_size_limit(max(csv.field_size_limit(), LARGEST_CELL))
        reader = csv.reader(lines, delimiter=self._delimiter, strict=True)
        first = 1
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise DataError(f"{self.place(first)}: {_csv_trouble(str(error))}") from None
            yield first, cells
            first = reader.line_num + 1

    def _checked(self, header: list[str], line: int) -> list[str]:
        names = [cell.strip() for cell in header]
        if names[0].lower().startswith("sep="):
            raise DataError(
                f"{self.place(line)}: found {shown(names[0])}, which only Excel understands; remove this line"
            )
        if names[0].lower().startswith(("<!doctype", "<html", "<?xml")):
            raise DataError(
                f"{self.place(line)}: this is a web page (HTML or XML), not a table; download the table itself"
            )
        if len(names) == 1 and (other := next((sign for sign in ";\t|," if sign in names[0]), None)):
            raise DataError(
                f"{self.place(line)}: the columns are separated by {_sign(other)}, not by {_sign(self._delimiter)}; "
                f"save the table with {_sign(self._delimiter)} between its columns"
            )
        seen: set[str] = set()
        for i, name in enumerate(names, start=1):
            if not name:
                raise DataError(
                    f"{self.place(line)}, column {i}: this column has no name in the header; name every column, "
                    "or remove this one (pandas: index=False, R: row.names=FALSE)"
                )
            if name in seen:
                raise DataError(
                    f"{self.place(line)}, column {i}: the name {shown(name)} occurs twice; rename one of the two"
                )
            seen.add(name)
        return names


def _sign(delimiter: str) -> str:
    return "a tab" if delimiter == "\t" else f"'{delimiter}'"


def _csv_trouble(reason: str) -> str:
    if "unexpected end" in reason or "field larger" in reason:
        return 'a double quote is opened in this row and never closed; close it, or write a quote in a cell as ""'
    if "expected after" in reason:
        return 'text follows a closing double quote; write a quote inside a quoted cell as ""'
    return f"not a row of this table ({reason})"


class Headerless(CsvTable):
    """Numbers only, the first line too; the columns are called by their numbers."""

    def __init__(self, file: TextFile, delimiter: str, width: int) -> None:
        super().__init__(file, delimiter)
        self._names = [str(number) for number in range(1, width + 1)]
        self.notes[f"{self.name}: there is no header line, so the columns are named 1 to {width}"] = None

    def columns(self) -> list[str]:
        return self._names

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        chosen = [int(column) - 1 for column in columns]
        for line, cells in self._records():
            if any(cells) and len(cells) != len(self._names):
                raise DataError(f"{self.place(line)}: found {len(cells)} cells, but line 1 has {len(self._names)}")
            if any(cells):
                yield line, tuple(cells[i] for i in chosen)
