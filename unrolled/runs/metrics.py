"""metrics.jsonl: one JSON object per line, appended while training; the one record file that grows.

A kill can cut the line that is being written and no other, so a last line that is not whole is left out when reading
and removed before the next is added.
"""

from __future__ import annotations

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


def cut(path: Path, step: int) -> None:
    """Remove the lines after a step; lines without a step stay."""
    lines = list(_lines(path))
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
