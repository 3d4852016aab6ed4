"""Tables with one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unrolled.core.data_spec import ReaderSpec
from unrolled.data.files.json_values import json_of
from unrolled.data.files.tables import RecordTable
from unrolled.data.files.text_file import TextFile


class JsonlTable(RecordTable):
    """One JSON object a line."""

    def __init__(self, file: TextFile) -> None:
        super().__init__(file.name, file.notes)
        self._file = file

    def records(self) -> Iterator[tuple[int, Any]]:
        blank = 0
        for line, text in enumerate(self._file.lines(), start=1):
            if text.strip():
                yield line, json_of(text, f"{self.name}, line {line}", line)
            else:
                blank += 1
        if blank:
            self.notes[f"{self.name}: {blank} blank lines were skipped"] = None

    def place(self, number: int) -> str:
        return f"{self.name}, line {number}"

    def digest(self) -> str:
        return self._file.digest()


READER = ReaderSpec(
    summary="a table: one JSON object per line", suffixes=(".jsonl", ".ndjson"), gives="table", read=JsonlTable
)
