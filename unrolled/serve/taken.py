"""What a visitor takes away: a run directory as zip, or what an export makes of a run."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from weakref import WeakKeyDictionary

from unrolled.core import discover
from unrolled.core.opening import open_regular
from unrolled.exports.tools.exporting import export, reasons
from unrolled.runs.run import Run
from unrolled.runs.selection import run_at
from unrolled.runs.storage.atomic import is_temp
from unrolled.runs.storage.locks import LOCK
from unrolled.serve.refused import Refused

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


_known: WeakKeyDictionary[Run, list[dict[str, Any]]] = WeakKeyDictionary()  # to find out takes seconds


def targets(run: Run) -> list[dict[str, Any]]:
    """Where a run can be exported to, or why not."""
    if run not in _known:
        _known[run] = [
            {"target": name, "summary": spec.summary, "suffix": spec.suffix, "why_not": why}
            for name, why in reasons(run).items()
            for spec in [discover.export(name)]
        ]
    return _known[run]


def exported(run: Run, target: str) -> tuple[str, bytes]:
    """The file of an export and the end of its name; several files are packed together."""
    with tempfile.TemporaryDirectory() as folder:
        spec = discover.export(target)
        written = export(run, target, Path(folder) / f"{run.path.resolve().name}{spec.suffix}")
        made = written.files[0]
        if len(written.files) > 1:
            made = Path(folder) / "all.zip"
            with made.open("wb") as to:
                _pack(list(written.files), Path(folder), run.path.resolve().name, to)
        with open_regular(made, within=Path(folder)) as file:
            return made.suffix, file.read()
