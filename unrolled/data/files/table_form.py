"""What separates the columns of a table, and whether its numbers have decimal commas, by its first rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence

SEPARATORS = (",", ";", "\t", "|")
FEWEST, WIDE, MOST = 10, 4, 0.6  # rows, columns and share of numbers, at least, of a table that is not called one
TOLD = re.compile(r'"?sep=(.)"?', re.IGNORECASE)  # a first line that spreadsheets write
COMMA = re.compile(r"\s*[+-]?\d+,\d+(?:[eE][+-]?\d+)?\s*")
EITHER = re.compile(r"\s*[+-]?[1-9]\d{0,2}[.,]\d{3}\s*")  # 1,234: decimals, or thousands
DECIMAL = re.compile(r"\s*[+-]?\d*,(?:\d{1,2}|\d{4,})(?:[eE][+-]?\d+)?\s*|\s*[+-]?0,\d+\s*")


def separator_of(lines: Sequence[str], usual: str) -> str:
    r"""The sign that makes columns of equal number of all lines, the usual one where several do.

    >>> separator_of(["a;b", "1,5;2"], ","), separator_of(["text", "some; words"], ","), separator_of(["a,b;c"], ",")
    (';', ',', ',')
    """
    widths = {sign: _widths(lines, sign) for sign in (usual, *SEPARATORS)}
    equal = {sign: found[0] for sign, found in widths.items() if len(set(found)) == 1 and found[0] > 1}
    numbers = {sign: sum(is_number_like(cell) for cell in next(_rows(lines[:1], sign), [])) for sign in equal}
    if equal:
        spaced = {sign: all(line.count(sign) == line.count(f"{sign} ") for line in lines) for sign in equal}
        return max(equal, key=lambda sign: (numbers[sign] == equal[sign], not spaced[sign], sign == usual, equal[sign]))
    several = [sign for sign, found in widths.items() if found and found[0] > 1]
    return several[0] if several else usual


def is_number_like(cell: str) -> bool:
    """Whether a cell is a number, with a decimal point or comma."""
    try:
        float(cell.replace(",", ".", 1))
    except ValueError:
        return False
    return True


def is_table_of_numbers(lines: Sequence[str]) -> bool:
    """Whether lines of a file that is not called a table are rows of one: equally many cells, most of them numbers.

    >>> is_table_of_numbers(["a1,x,1,2,3"] * 10), is_table_of_numbers(["well, 1, 2, or 3"] * 10)
    (True, False)
    """
    filled = [line for line in lines if line.strip()]
    if len(filled) < FEWEST:
        return False
    sign = separator_of(filled, ",")
    try:
        rows = list(_rows(filled, sign))[:-1]  # the last may be cut
    except csv.Error:
        return False
    cells = [cell for row in rows for cell in row]
    wide = {len(row) for row in rows} == {len(rows[0])} and len(rows[0]) >= WIDE
    return wide and sum(map(is_number_like, cells)) >= MOST * len(cells)


def _rows(lines: Iterable[str], sign: str) -> Iterator[list[str]]:
    return iter(csv.reader((f"{line}\n" for line in lines), delimiter=sign))


def _widths(lines: Sequence[str], sign: str) -> list[int]:
    """Cells of each row but the last, which may continue below; none where the rows cannot be read so."""
    try:
        found = [len(row) for row in _rows(lines, sign)]
    except csv.Error:
        return []
    return found[:-1] if len(found) > 2 else found


def has_decimal_commas(rows: Iterable[Sequence[str]]) -> bool:
    """Whether a cell can only be a number with a decimal comma; 1,234 may have a separator of thousands."""
    return any("," in cell and DECIMAL.fullmatch(cell) for row in rows for cell in row)


def quotes_are_letters(lines: Sequence[str]) -> bool:
    """Whether lines have equally many cells between tabs only where quotes enclose none: sentences have quotes, too."""
    if not any('"' in line for line in lines):
        return False
    filled = [line for line in lines if line.strip()]
    plain = {line.count("\t") for line in filled}
    try:
        enclosing = [len(row) for row in csv.reader((f"{line}\n" for line in filled), delimiter="\t", strict=True)]
    except csv.Error:
        enclosing = []
    return len(plain) == 1 and len(enclosing) < len(filled)
