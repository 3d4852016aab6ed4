"""Hostile directories: every value of every JSON file replaced, and sealed again so that no seal protects."""

from __future__ import annotations

import copy
import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unrolled.runs.storage import manifest
from unrolled.runs.storage.atomic import Seal

DEEP: Any = 0
for _ in range(150):
    DEEP = [DEEP]
ODD: dict[str, Any] = {
    "nothing": None, "true": True, "minus": -1, "zero": 0, "half": 0.5, "huge": 10**9, "huger": 10**30, "float": 1e308,
    "text": "x", "long": "A" * 1_000_000, "digits": "9" * 4000, "path": "../../../etc/passwd", "model": "transformer",
    "escape": "\x1b]0;owned\x07", "list": [], "table": {}, "deep": DEEP, "many": [0] * 100_000, "names": {"x": "y"},
}  # fmt: skip


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value: of long lists the first and the last."""
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list) and value:
        for at in sorted({0, len(value) - 1}):
            yield from leaves(value[at], (*path, at))


def replaced(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = odd
    return changed


def reseal(directory: Path) -> None:
    """The manifest of what is there now."""
    seals = manifest.read_manifest(directory)
    for name in seals.files:
        data = (directory / name).read_bytes()
        seals.files[name] = Seal(hashlib.sha256(data).hexdigest(), len(data))
    (directory / manifest.NAME).write_text(seals.to_text())


def trials(text: str, seed: int, n: int | None = None) -> list[tuple[str, str]]:
    """Names and texts of a JSON file in which one value is another; of JSON lines in the first line."""
    first, _, rest = text.partition("\n") if _is_lines(text) else (text, "", "")
    value = json.loads(first)
    made = [(path, kind) for path in leaves(value) for kind in ODD]
    chosen = made if n is None else random.Random(seed).sample(made, min(n, len(made)))
    found = []
    for path, kind in chosen:
        changed = json.dumps(replaced(value, path, ODD[kind]))
        found.append((f"{'.'.join(map(str, path))}={kind}", changed + ("\n" + rest if rest else "\n")))
    return found


def _is_lines(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return True
    return False
