"""metrics.jsonl: one JSON object per line, appended while training; the one record file that grows.

A kill can cut the line that is being written and no other, so a last line that is not whole is left out when reading
and removed before the next is added. The manifest seals what the file began with when a line was last added
(RunDirectory), so that a changed digit is met; lines that a kill left after that are read as they are.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from unrolled.core.errors import DataError
from unrolled.core.opening import JSON, open_regular, parse_json, read_bytes
from unrolled.runs.storage import atomic, formats


def append(path: Path, values: Mapping[str, Any]) -> None:
    """Add one line, so that it survives the process."""
    line = formats.json_text(values, str(path), indent=None).encode("utf-8")
    if _is_cut(path):
        atomic.write_bytes(path, b"".join(line + b"\n" for line, _ in lines(content(path), path)))
    atomic.append(path, line)


def content(path: Path) -> bytes:
    """All that is in the file; nothing where there is none yet."""
    return read_bytes(path, JSON, within=path.parent) if os.path.lexists(path) else b""


def size(path: Path) -> int:
    """Bytes of the lines so far."""
    return path.stat().st_size if path.exists() else 0


def until(path: Path, step: int, n_bytes: int | None = None) -> bytes | None:
    """The lines that were there when the file had `n_bytes`; where that is not known, those up to a step, and those
    without one. None: there are no others.

    After a roll-back steps repeat, so that only the bytes tell which lines were written before a checkpoint.
    """
    found = list(lines(content(path), path))
    ends = list(itertools.accumulate((len(line) + 1 for line, _ in found), initial=0))
    if n_bytes in ends:
        kept = found[: ends.index(n_bytes)]
    else:
        kept = [pair for pair in found if not isinstance(pair[1].get("step"), int) or pair[1]["step"] <= step]
    return b"".join(line + b"\n" for line, _ in kept) if len(kept) < len(found) or _is_cut(path) else None


def lines(data: bytes, path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """All whole lines in order, and their values."""
    rows = data.split(b"\n")
    last = len(rows) if rows[-1] else len(rows) - 1
    for number, line in enumerate(rows[:last], 1):
        values = None
        try:
            values = parse_json(line, str(path))
        except DataError:
            if number == last:
                return
        if not isinstance(values, dict):
            raise DataError(f"{path}, line {number}: damaged (not a JSON object); restore the file from a copy")
        yield line, values


def _is_cut(path: Path) -> bool:
    """Whether the file ends within a line."""
    if not path.exists() or path.stat().st_size == 0:
        return False
    with open_regular(path, within=path.parent) as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) != b"\n"
