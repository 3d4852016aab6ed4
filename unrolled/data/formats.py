"""Which reader claims a file, by how its name ends: a file of readers/, or one of the user's own (--with)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from unrolled.core import discover
from unrolled.core.data_spec import ReaderSpec
from unrolled.core.errors import UsageError
from unrolled.data.files.tables import ListTable, Table
from unrolled.data.files.text_file import TextFile, unpacked


def ending_of(path: Path) -> str:
    """`.csv` of `a.csv` and of the packed `a.csv.gz`, in small letters."""
    return Path(unpacked(path.name.lower())).suffix


def suffixes_of(*names: str) -> tuple[str, ...]:
    """How the names of files end that these readers claim: `suffixes_of("sound")`."""
    return tuple(suffix for suffix, (name, _) in _claims().items() if name in names)


def suffixes_giving(gives: str) -> tuple[str, ...]:
    """The same of all readers that give tables, or examples."""
    return tuple(suffix for suffix, (_, found) in _claims().items() if found == gives)


def is_table(path: Path) -> bool:
    return ending_of(path) in suffixes_giving("table")


def reader_of(path: Path) -> ReaderSpec | None:
    """The reader that claims a file; None: none does, and it is plain text if it is anything."""
    name, _ = _claims().get(ending_of(path), ("", ""))
    spec: ReaderSpec | None = discover.readers.declaration(name) if name else None
    return spec


def open_table(path: Path, file: TextFile | None = None) -> Table | None:
    """The table in a file, told by its ending (packed or not); None: the ending is not that of a table."""
    spec = reader_of(path)
    if spec is None or spec.gives != "table":
        return None
    with discover.readers.own_mistakes():
        found: Any = spec.read(file or TextFile(path))
    table: Table = ListTable(found, str(path)) if isinstance(found, list) else found
    return table


def _claims() -> dict[str, tuple[str, str]]:
    names = discover.readers.names()
    return _claimed(tuple((name, str(discover.readers.file(name))) for name in names))


@lru_cache(maxsize=4)
def _claimed(readers: tuple[tuple[str, str], ...]) -> dict[str, tuple[str, str]]:
    """The reader of each suffix and what it gives; a suffix that two claim is an error."""
    found: dict[str, tuple[str, str]] = {}
    for name, _ in readers:
        told = discover.readers.told(name)  # which imports nothing
        if not {"suffixes", "gives"} <= told.keys():  # computed ones
            told = vars(discover.readers.declaration(name))
        for suffix in told["suffixes"]:
            if suffix in found:
                both = f"'{found[suffix][0]}' and '{name}'"
                raise UsageError(f"the readers {both} both claim {suffix} files; remove one of them")
            found[suffix] = (name, told["gives"])
    return found
