"""Sequences of letters with a name each, as molecular biologists keep them (FASTA):

    >sp|P0A7B8 class=enzyme length=71     the name, and columns `key=value`; other words are not used
    MTTIVSVRRNGHVVIAGDGQATLGNTVMKGN       the sequence, in any number of lines
    VKKVRRLYNDKVIAGFAGGTADAFTLFELFE

A row has the columns `id`, `sequence`, and each key of the headers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unrolled.core.data_spec import ReaderSpec
from unrolled.core.errors import DataError
from unrolled.data.files.tables import RecordTable
from unrolled.data.files.text_file import TextFile

OWN = ("id", "sequence")


class FastaTable(RecordTable):
    """A row for each sequence; its place is the line of its name."""

    def __init__(self, file: TextFile) -> None:
        super().__init__(file.name, file.notes)
        self._file = file

    def records(self) -> Iterator[tuple[int, Any]]:
        empty = True
        for line, header, letters in self._sequences():
            record, more = _named(header)
            empty = False
            if more:
                self.notes[f"{self.name}: the words after the names of sequences are not used, except key=value"] = None
            if not letters:
                raise DataError(
                    f"{self.place(line)}: the sequence '{header[:40]}' has no letters; remove it or add them"
                )
            yield line, record | {"sequence": letters}
        if empty:
            raise DataError(f"{self.name}: there is no sequence in it; each begins with a line such as '>name'")

    def _sequences(self) -> Iterator[tuple[int, str, str]]:
        """The line, the header and the letters of each sequence."""
        begun, header, parts = 0, "", list[str]()
        for line, text in enumerate(self._file.lines(), start=1):
            text = text.strip()
            if text.startswith(">"):
                if begun:
                    yield begun, header, "".join(parts)
                begun, header, parts = line, text[1:].strip(), []
            elif text and not text.startswith(";"):
                if not begun:
                    raise DataError(
                        f"{self.place(line)}: a sequence begins with a line such as '>name', not '{text[:20]}'"
                    )
                parts.append("".join(text.split()))
        if begun:
            yield begun, header, "".join(parts)

    def place(self, number: int) -> str:
        return f"{self.name}, line {number}"

    def digest(self) -> str:
        return self._file.digest()


def _named(header: str) -> tuple[dict[str, str], bool]:
    """The columns of a header, and whether it has other words.

    >>> _named("seq1 class=A kept in ice")
    ({'id': 'seq1', 'class': 'A'}, True)
    """
    name, *words = header.split() or [""]
    pairs = dict(word.split("=", 1) for word in words if "=" in word.strip("="))
    kept = {key: value for key, value in pairs.items() if key not in OWN}
    return {"id": name, **kept}, len(kept) < len(words)


READER = ReaderSpec(
    summary="a table: sequences of letters with names (FASTA)",
    suffixes=(".fasta", ".fa", ".faa", ".fna", ".ffn"),
    gives="table",
    read=FastaTable,
)
