"""What a visitor takes away: a run directory as zip, or what an export makes of a run."""

from __future__ import annotations

import asyncio
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from unrolled.core import discover
from unrolled.core.opening import open_regular
from unrolled.runs.selection import run_at
from unrolled.runs.storage.atomic import is_temp
from unrolled.runs.storage.locks import LOCK
from unrolled.serve import orders
from unrolled.serve.found import Place
from unrolled.serve.limits import Limits
from unrolled.serve.refused import Refused, busy

LEFT_OUT = ("checkpoints", "exports", "tensorboard", LOCK)  # what only resuming and watching needs
CHUNK = 2**18
MOST_FILES = 20_000


def zipped(path: Path, name: str, most: int) -> Iterator[bytes]:
    """A run directory as a zip file, piece by piece; what is only for resuming its training is left out."""
    folder = run_at(path)
    files = [each for each in sorted(folder.rglob("*")) if _goes_along(each, folder)]
    if len(files) > MOST_FILES or sum(each.stat().st_size for each in files) > most:
        raise Refused(413, f"this run has more than {most:,} bytes; copy its folder instead", "too_large")
    target: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 closed by who reads it
    try:
        _pack(files, folder, name, target)
    except BaseException:
        target.close()
        raise
    return _pieces(target)


def _goes_along(path: Path, folder: Path) -> bool:
    parts = path.relative_to(folder).parts
    hidden = parts[0] in LEFT_OUT or any(is_temp(part) for part in parts)
    return not hidden and path.is_file() and not path.is_symlink()


def _pack(files: list[Path], folder: Path, name: str, target: IO[bytes]) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for each in files:
            inner = f"{name}/{each.relative_to(folder).as_posix()}"
            with open_regular(each, within=folder) as source, packed.open(inner, "w", force_zip64=True) as to:
                while chunk := source.read(CHUNK):
                    to.write(chunk)
    target.seek(0)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(CHUNK):
            yield chunk


class Exports:
    """Exports of runs, one at a time, each in a process beside the server."""

    def __init__(self, limits: Limits, own_file: str | None) -> None:
        self._limits, self._own_file = limits, own_file
        self._known: dict[Place, list[dict[str, Any]]] = {}  # to find out takes seconds
        self._busy = asyncio.Lock()

    async def targets(self, place: Place) -> list[dict[str, Any]]:
        """Where a run can be exported to, or why not."""
        if place not in self._known:
            self._known[place] = await self._done(place, {"do": "targets"})
        return self._known[place]

    async def made(self, place: Place, target: str) -> tuple[str, bytes]:
        """The file of an export and the end of its name; several files are packed together."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / f"{place.name}{discover.export(target).suffix}"
            files = await self._done(place, {"do": "export", "target": target, "out": str(out)})
            return await asyncio.to_thread(_content, [Path(file) for file in files], Path(folder), place.name)

    async def _done(self, place: Place, order: dict[str, Any]) -> Any:
        if self._busy.locked():
            raise busy("another run is being exported")
        async with self._busy:
            order |= {"run": str(place.path), "own_file": self._own_file}
            answer = await orders.done(order, self._limits.seconds)
        if "error" in answer:
            raise orders.refusal(answer, str(answer["error"]).replace(str(run_at(place.path)), place.name))
        return answer["done"]


def _content(files: list[Path], folder: Path, name: str) -> tuple[str, bytes]:
    made = files[0]
    if len(files) > 1:
        made = folder / "all.zip"
        with made.open("wb") as to:
            _pack(files, folder, name, to)
    with open_regular(made, within=folder) as file:
        return made.suffix, file.read()
