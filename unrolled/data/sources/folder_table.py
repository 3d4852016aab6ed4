"""Several tables with the same columns in a folder, such as one for each month: they are read as one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from unrolled.core.errors import UnrolledError
from unrolled.data.files.folders import is_about
from unrolled.data.files.tables import Table
from unrolled.data.formats import ending_of, is_table, open_table
from unrolled.data.given_splits import part_in

ROWS = 1 << 40  # of a table, at most


def folder_table(folder: Path) -> Table | None:
    """The tables of a folder as one; None: it has other files too, or fewer than two, or their columns differ."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not is_about(path))
    alike = len(files) > 1 and all(
        path.parent == folder and is_table(path) and not part_in(path.name) for path in files
    )
    if not alike or len({ending_of(path) for path in files}) > 1:
        return None
    with suppress(UnrolledError):
        first, *others = (table for path in files if (table := open_table(path)) is not None)
        if all(set(table.columns()) == set(first.columns()) for table in others):
            return JoinedTable(str(folder), [first, *others])
    return None


class JoinedTable:
    """Tables one after the other, in the order of their names; a row is placed in its own."""

    def __init__(self, name: str, tables: Sequence[Table]) -> None:
        self.name, self._tables = name, tables
        self.notes: dict[str, None] = {f"{name}: {len(tables)} tables with the same columns are read as one": None}

    def columns(self) -> list[str]:
        return self._tables[0].columns()

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        for i, table in enumerate(self._tables):
            for number, cells in table.rows(columns):
                yield i * ROWS + number, cells
            self.notes.update(table.notes)

    def place(self, number: int) -> str:
        i, own = divmod(number, ROWS)
        return self._tables[i].place(own)

    def digest(self) -> str:
        digests = "".join(table.digest() for table in self._tables)
        return hashlib.sha256(digests.encode()).hexdigest()
