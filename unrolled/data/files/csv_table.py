"""Tables in .csv and .tsv files."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from unrolled.core.errors import DataError, UnrolledError, some
from unrolled.core.front import option
from unrolled.data.files.cell_values import LocalNumber, shown
from unrolled.data.files.table_form import (
    COMMA,
    EITHER,
    TOLD,
    has_decimal_commas,
    is_number_like,
    quotes_are_letters,
    separator_of,
)
from unrolled.data.files.text_file import TextFile

LARGEST_CELL = 1 << 26  # characters; more is taken for a quote that is never closed
LOOKED_AT = 50  # lines, to find the separator
ROWS = 1000  # that are looked at for decimal commas


class CsvTable:
    """Values with a sign between them, a header line and double quotes; every row as wide as the header.

    The sign is the usual one of the file's ending (a comma, a tab) where the first rows show no other. A first column
    without a name numbers or names the rows, as R and pandas write them, and is left out.
    """

    def __init__(self, file: TextFile, usual: str) -> None:
        self.name, self.notes = file.name, file.notes
        self._file, self._usual = file, usual
        self._separator: str | None = None
        self._decimal: str | None = None
        self._named_rows: bool | None = None
        self._quotes_are_letters = False

    @property
    def separator(self) -> str:
        """What stands between two cells: given, told by the file, or found."""
        if self._separator is None:
            self._separator = self._sought()
            if self._separator == "\t" and quotes_are_letters(list(islice(self._file.lines(), ROWS))):
                self._quotes_are_letters = True
                self._file.tell("double quotes are letters like others, because they do not enclose cells")
        return self._separator

    def _sought(self) -> str:
        form = self._file.form
        if form.separator is not None and not form.is_habit:
            return form.separator
        lines = list(islice((line for line in self._file.lines() if line.strip()), LOOKED_AT))
        if lines and (told := TOLD.fullmatch(lines[0].strip())):
            return told[1]
        if lines and form.separator is not None and form.separator in lines[0]:
            return form.separator
        found = separator_of(lines, self._usual)
        if found != self._usual:
            given = f"override with {option('separator')}"
            self._file.tell(f"the columns are separated by {_sign(found)}, found in its first lines; {given}")
        return found

    @property
    def decimal(self) -> str:
        """The sign before the decimals, given or found in the first rows."""
        if self._decimal is None:
            self._decimal = self._file.form.decimal or self._decimal_sought()
        return self._decimal

    def _decimal_sought(self) -> str:
        try:
            commas = has_decimal_commas(cells for _, cells in islice(self._records(), ROWS))
        except UnrolledError:  # reported where they are read
            commas = False
        return self._comma() if commas else "."

    def _comma(self) -> str:
        given = f"override with {option('decimal', '.')}"
        self._file.tell(f"numbers such as 1,5 are read with a decimal comma; {given}")
        return ","

    def cell(self, text: str) -> str:
        """A cell, which knows what number it is where that has a comma."""
        if "," in text and COMMA.fullmatch(text):
            if self.decimal == "." and self._file.form.decimal is None and not EITHER.fullmatch(text):
                self._decimal = self._comma()  # further down than was looked at
            either = self.decimal == "." and EITHER.fullmatch(text)
            plain = text.replace(",", ".") if self.decimal == "," else None
            return LocalNumber.of(text, plain) if plain or (either and self._file.form.decimal is None) else text
        if "." in text and EITHER.fullmatch(text) and self.decimal == ",":
            return LocalNumber.of(text, None)
        return text

    def first(self) -> list[str]:
        """The cells of the first row, be it a header or not."""
        return next((cells for _, cells in self._records() if any(cells)), [])

    def first_rows(self, n: int) -> list[list[str]]:
        """The first rows, be there a header among them or not, as far as they can be read."""
        found: list[list[str]] = []
        with suppress(UnrolledError):  # reported where they are read
            filled = (cells for _, cells in self._records() if any(cells))
            found.extend([self.cell(cell) for cell in cells] for cells in islice(filled, n))
        return found

    def without_header(self) -> Headerless:
        """The same table whose first row is one like others."""
        return Headerless(self._file, self._usual, len(self.first()))

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
            yield line, tuple(self.cell(cells[i]) for i in chosen)
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
                f"({some(header)}); put cells that contain {_sign(self.separator)} in double quotes, and "
                "remove lines above the header"
            )

    def place(self, number: int) -> str:
        return f"{self.name}, line {number}"

    def digest(self) -> str:
        return self._file.digest()

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Rows with the number of the line they begin on, without the names of rows."""
        lines = (line + "\n" for line in self._file.lines())
        csv.field_size_limit(max(csv.field_size_limit(), LARGEST_CELL))
        sign = self.separator  # which finds out about quotes, too
        reader = csv.reader(lines, delimiter=sign, strict=True)
        if self._quotes_are_letters:
            reader = csv.reader(lines, delimiter=sign, strict=True, quoting=csv.QUOTE_NONE)
        first, begun = 1, False
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise DataError(f"{self.place(first)}: {_csv_trouble(str(error))}") from None
            if not begun and any(cells) and not cells[0].lower().startswith("sep="):
                begun = True
                self._have_names(cells)
            if begun or not any(cells):  # before it, the line that tells the separator
                yield first, cells[1:] if self._named_rows else cells
            first = reader.line_num + 1

    def _have_names(self, header: list[str]) -> None:
        """Find whether the first column has the names of rows: it has none itself, unlike all others."""
        if self._named_rows is None:
            others = [cell.strip() for cell in header[1:]]
            self._named_rows = not header[0].strip() and all(others) and not all(map(is_number_like, others))
            if self._named_rows:
                self._file.tell("the first column has no name, is taken as row names and is not used")

    def _checked(self, header: list[str], line: int) -> list[str]:
        names = [cell.strip() for cell in header]
        if names[0].lower().startswith(("<!doctype", "<html", "<?xml")):
            raise DataError(
                f"{self.place(line)}: this is a web page (HTML or XML), not a table; download the table itself"
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
    """Rows without a header; the columns are called by their numbers."""

    def __init__(self, file: TextFile, usual: str, width: int) -> None:
        super().__init__(file, usual)
        self._named_rows = False
        self._names = [str(number) for number in range(1, width + 1)]

    def columns(self) -> list[str]:
        self.notes[f"{self.name}: there is no header line, so the columns are named 1 to {len(self._names)}"] = None
        return self._names

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        chosen = [int(column) - 1 for column in columns]
        for line, cells in self._records():
            if any(cells) and len(cells) != len(self._names):
                raise DataError(f"{self.place(line)}: found {len(cells)} cells, but line 1 has {len(self._names)}")
            if any(cells):
                yield line, tuple(self.cell(cells[i]) for i in chosen)
