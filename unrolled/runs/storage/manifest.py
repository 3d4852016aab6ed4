"""MANIFEST.json: the sha256 and the size of every file that does not grow, so that damage is met before use.

Replacing a sealed file takes two renames (file and manifest), and a kill may come between them. So the manifest first
announces the new content as pending; until it is settled, the old and the new content are both right:

    manifest (old, pending new)  ->  file  ->  manifest (new)

The manifest carries a sha256 of itself (`check`), so that its own damage is not mistaken for that of the files.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Any

from unrolled.core.errors import DataError
from unrolled.core.opening import DATA, JSON, open_regular, parse_json, read_bytes
from unrolled.runs.storage.atomic import Seal
from unrolled.runs.storage.formats import (
    CHECK,
    FORMAT,
    MANIFEST_FORMAT,
    check_of,
    json_text,
    require_format,
    with_check,
)

NAME = "MANIFEST.json"
ADVICE = "restore it from a copy of the run, or train the run again"
_SHA256 = re.compile(r"[0-9a-f]{64}")


def plain_name(name: str) -> str:
    """A name inside the directory: no way up, no absolute path, nothing hidden.

    >>> plain_name("codec/tokenizer.json")
    'codec/tokenizer.json'
    """
    parts = PurePosixPath(name).parts
    odd = not parts or "\\" in name or ":" in parts[0] or any(ord(letter) < 32 for letter in name)
    if odd or str(PurePosixPath(name)) != name or any(part.startswith((".", "/")) for part in parts):
        raise DataError(f"{name!r} is not a path inside a run directory; use names such as codec/labels.json")
    return name


@dataclass(slots=True)
class Manifest:
    """What the files should be (`files`), and what those being replaced will be (`pending`)."""

    files: dict[str, Seal] = field(default_factory=dict)
    pending: dict[str, Seal] = field(default_factory=dict)
    prefixes: dict[str, Seal] = field(default_factory=dict)
    """What files that grow begin with: all that was in them when a line was last added."""

    def accepted(self, name: str) -> list[Seal]:
        """The contents under which a file is right; none if it is not listed."""
        return [table[name] for table in (self.files, self.pending) if name in table]

    def to_text(self) -> str:
        body: dict[str, Any] = {FORMAT: MANIFEST_FORMAT, "files": _plain(self.files), "pending": _plain(self.pending)}
        if self.prefixes:
            body["prefixes"] = _plain(self.prefixes)
        return json_text(with_check(body), NAME)

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Manifest:
        body = parse_json(data, where)
        if not isinstance(body, dict) or FORMAT not in body:
            raise DataError(f"{where}: not the manifest of a run; {ADVICE}")
        require_format(body, MANIFEST_FORMAT, where, ADVICE)
        if body.pop(CHECK, None) != check_of(body):
            raise DataError(f"{where}: the manifest is damaged (its own sha256 differs); {ADVICE}")
        return cls(*(_seals(body.get(key), where) for key in ("files", "pending", "prefixes")))


def _plain(table: dict[str, Seal]) -> dict[str, Any]:
    return {name: {"sha256": seal.sha256, "size": seal.size} for name, seal in table.items()}


def _seals(table: Any, where: str) -> dict[str, Seal]:
    result = {}
    for name, entry in table.items() if isinstance(table, dict) else ():
        sha256, size = (entry.get("sha256"), entry.get("size")) if isinstance(entry, dict) else (None, None)
        if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256) or not isinstance(size, int):
            raise DataError(f"{where}: the entry of {name!r} is not a sha256 and a size; {ADVICE}")
        result[plain_name(name)] = Seal(sha256, size)
    return result


def opened(path: Path, limit: int = DATA) -> BufferedReader:
    """A file of a run, which does not lie outside its directory, opened for reading."""
    if not os.path.lexists(path):
        raise DataError(f"{path} is missing; {ADVICE}")
    try:
        return open_regular(path, limit, within=path.parent)
    except DataError as error:
        raise DataError(f"{error}; {ADVICE}") from None


def _check_size(path: Path, stream: BufferedReader, seals: Iterable[Seal]) -> None:
    size = os.fstat(stream.fileno()).st_size
    expected = sorted({seal.size for seal in seals})
    if size not in expected:
        wanted = " or ".join(f"{n:,}" for n in expected)
        raise DataError(f"{path} is damaged: it has {size:,} bytes where the manifest says {wanted}; {ADVICE}")


def read(path: Path, seals: list[Seal], limit: int) -> bytes:
    """The content of a file that is one of `seals`; what is returned is what was checked."""
    with opened(path, limit) as stream:
        _check_size(path, stream, seals)
        data = stream.read()
    _check_digest(path, Seal(hashlib.sha256(data).hexdigest(), len(data)), seals)
    return data


def check(path: Path, seals: list[Seal]) -> Seal:
    """Like `read` for files of any size: nothing is kept in memory."""
    with opened(path) as stream:
        _check_size(path, stream, seals)
    found = measure(path)
    _check_digest(path, found, seals)
    return found


def begins(data: bytes, seals: Iterable[Seal]) -> bool:
    """Whether a file that grows begins with one of the contents that it had."""
    return any(
        len(data) >= each.size and hashlib.sha256(data[: each.size]).hexdigest() == each.sha256 for each in seals
    )


def measure(path: Path) -> Seal:
    """The seal of a file as it is now."""
    with opened(path) as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return Seal(digest, stream.tell())


def _check_digest(path: Path, found: Seal, seals: list[Seal]) -> None:
    if found not in seals:
        raise DataError(
            f"{path} is damaged: its sha256 begins with {found.sha256[:12]} where the manifest says "
            f"{' or '.join(seal.sha256[:12] for seal in seals)}; {ADVICE}"
        )


def read_manifest(directory: Path) -> Manifest:
    """The manifest of a directory."""
    path = directory / NAME
    if not os.path.lexists(path):
        raise DataError(f"{path} is missing; {ADVICE}")
    return Manifest.from_bytes(read_bytes(path, JSON, within=directory), str(path))
