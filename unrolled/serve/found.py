"""Which runs are served, by name: run directories, comparisons, and folders that hold such. Imports no torch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.core.errors import UnrolledError, UsageError
from unrolled.runs.selection import read_table, run_at
from unrolled.runs.storage.directory import CONFIG, TABLE, RunDirectory

MOST = 1000  # runs
WEIGHTS = "model.safetensors"


class Place(NamedTuple):
    """A run that is served; it is opened when it is asked for."""

    name: str
    path: Path
    created: int  # seconds

    def n_bytes(self) -> int:
        """Bytes of the file of its weights; 0: there is none, which is reported when it is opened."""
        weights = run_at(self.path) / WEIGHTS
        return weights.stat().st_size if weights.is_file() else 0

    def version(self) -> tuple[Any, ...]:
        """What changes when a run is trained again, or a comparison selects another one; empty: it has gone."""
        found = []
        for path in (self.path / TABLE, self.path / WEIGHTS):
            with suppress(OSError):
                facts = path.stat()
                found.append((path.name, facts.st_ino, facts.st_mtime_ns))
        return tuple(found)


def find(paths: Iterable[str], growing: Iterable[str] = ()) -> dict[str, Place]:
    """The runs at some places by name, the first name of a path first; folders that grow may still be empty.

    A comparison is served under its name by the model that it selected, and each of its runs as NAME.RUN.
    """
    found: dict[str, Place] = {}
    for path, may_be_empty in [*((each, False) for each in paths), *((each, True) for each in growing)]:
        some = list(_in(Path(path)))
        if not some and not may_be_empty:
            raise UsageError(f"{path}: neither a run directory, nor a comparison, nor a folder that holds such")
        for name, place in some:
            if name in found and found[name].path != place:
                raise UsageError(f"{found[name].path} and {place} would both be served as '{name}'; rename one of them")
            found[name] = Place(name, place, int(place.stat().st_mtime))
            if len(found) > MOST:
                raise UsageError(f"{path}: there are more than {MOST} runs; name those to serve")
    return found


def folders(paths: Iterable[str]) -> list[Path]:
    """The folders at some places, and those directly in them."""
    places = [Path(path) for path in paths if Path(path).is_dir()]
    inner = [each for place in places for each in sorted(place.iterdir()) if each.is_dir() and not each.is_symlink()]
    return [*places, *inner][: 10 * MOST]


def about(place: Place) -> dict[str, Any]:
    """What is known of a run without opening it: its task and model, and whether it is a comparison."""
    return {"run": place.name, **_settings(place.path, place.path.stat().st_mtime_ns if place.path.is_dir() else 0)}


@lru_cache(4 * MOST)
def _settings(path: Path, changed: int) -> dict[str, Any]:
    try:
        config = RunDirectory(run_at(path)).read_config()
    except UnrolledError:  # told when it is opened
        config = {}
    facts = {name: value if isinstance(value := config.get(name), str) else None for name in ("task", "model")}
    return {**facts, "is_comparison": (path / TABLE).is_file()}


def _in(path: Path) -> Iterator[tuple[str, Path]]:
    if _is_one(path):
        yield from _one(path)
    elif path.is_dir():
        for each in sorted(path.iterdir()):
            if _is_one(each):
                yield from _one(each)


def _is_one(path: Path) -> bool:
    return (path / CONFIG).is_file() or (path / TABLE).is_file()


def _one(path: Path) -> Iterator[tuple[str, Path]]:
    name = as_name(path.absolute().name)
    yield name, path
    if (path / CONFIG).is_file():
        return
    for row in read_table(path)["rows"]:
        for run in row.get("runs") or []:
            inner = path / Path(run).name
            if (inner / CONFIG).is_file():
                yield f"{name}.{as_name(inner.name)}", inner


def as_name(name: str) -> str:
    """A name that can stand in an address.

    >>> as_name("my run/é")
    'my-run--'
    """
    return re.sub(r"[^A-Za-z0-9._-]", "-", name) or "run"
