"""Tables in one JSON list of objects."""

from __future__ import annotations

from typing import Any

from unrolled.core.data_spec import ReaderSpec
from unrolled.core.errors import DataError
from unrolled.data.files.cell_values import kind_of
from unrolled.data.files.json_values import json_of
from unrolled.data.files.tables import ListTable
from unrolled.data.files.text_file import TextFile


class JsonTable(ListTable):
    """A .json file that is one list; such a file cannot be read in pieces, so large data belongs in .jsonl."""

    def __init__(self, file: TextFile) -> None:
        super().__init__(self._read(file), file.name)
        self.notes = file.notes
        self._file = file

    def _read(self, file: TextFile) -> list[Any]:
        text = file.text()
        if not text.strip():
            raise DataError(f"{file.name}: the file is empty, expected a list of strings or of objects")
        values = json_of(text, file.name, None)
        if not isinstance(values, list):
            raise DataError(
                f"{file.name}: found {kind_of(values)}, expected a list [...] of strings or of objects (pandas "
                "writes one with orient='records')"
            )
        return values

    def digest(self) -> str:
        return self._file.digest()


READER = ReaderSpec(summary="a table: a JSON list of objects", suffixes=(".json",), gives="table", read=JsonTable)
