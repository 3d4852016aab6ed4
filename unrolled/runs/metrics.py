"""metrics.jsonl: one JSON object per line, appended while training; the one record file that grows.

A kill can cut the line that is being written and no other, so a last line that is not whole is left out when reading
and removed before the next is added.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from unrolled.core.errors import DataError
from unrolled.core.opening import JSON, open_regular, parse_json, read_bytes
from unrolled.runs import atomic, formats


def append(path: Path, values: Mapping[str, Any]) -> None:
    """Add one line, so that it survives the process."""
    line = formats.json_text(values, str(path), indent=None).encode("utf-8")
    if _is_cut(path):
        _rewrite(path, list(_lines(path)))
    atomic.append(path, line)


def read(path: Path) -> list[dict[str, Any]]:
    """All whole lines in order."""
    return [values for _, values in _lines(path)]


def size(path: Path) -> int:
    """Bytes of the lines so far."""
    return path.stat().st_size if path.exists() else 0


def cut(path: Path, step: int, n_bytes: int | None = None) -> None:
    """Remove the lines that came after the file had `n_bytes`; where that is not known, those after a step.

    After a roll-back steps repeat, so that only the bytes tell which lines were written before a checkpoint.
    """
    lines = list(_lines(path))
    ends = list(itertools.accumulate((len(line) + 1 for line, _ in lines), initial=0))
    if n_bytes in ends:
        kept = lines[: ends.index(n_bytes)]
    else:
        kept = [pair for pair in lines if not isinstance(pair[1].get("step"), int) or pair[1]["step"] <= step]
    if len(kept) < len(lines) or _is_cut(path):
        _rewrite(path, kept)


def _lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    if not path.exists():
        return
    lines = read_bytes(path, JSON, within=path.parent).split(b"\n")
    last = len(lines) if lines[-1] else len(lines) - 1
    for number, line in enumerate(lines[:last], 1):
        values = None
        try:
            values = parse_json(line, str(path))
        except DataError:
            if number == last:
                return
        if not isinstance(values, dict):
            raise DataError(f"{path}, line {number}: damaged (not a JSON object); remove this line")
        yield line, values


def _rewrite(path: Path, lines: list[tuple[bytes, dict[str, Any]]]) -> None:
    atomic.write_bytes(path, b"".join(line + b"\n" for line, _ in lines))


def _is_cut(path: Path) -> bool:
    """Whether the file ends within a line."""
    if not path.exists() or path.stat().st_size == 0:
        return False
    with open_regular(path, within=path.parent) as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) != b"\n"
