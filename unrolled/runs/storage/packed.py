"""A run directory as bytes, to keep a run without a directory: everything that is sealed, and the seals.

Checkpoints and event files are left out: nothing that is read from a finished run needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from unrolled.core.errors import UsageError
from unrolled.core.opening import DATA, JSON, read_bytes
from unrolled.core.outside import write_new
from unrolled.runs.storage import manifest, metrics
from unrolled.runs.storage.directory import METRICS, RunDirectory


def pack(directory: RunDirectory) -> dict[str, bytes]:
    """The content of each file of a run, by name, checked."""
    path = directory.path
    seals = manifest.read_manifest(path)
    files = {name: manifest.read(path / name, [seal], DATA) for name, seal in seals.files.items()}
    files |= {METRICS: lines} if (lines := metrics.content(path / METRICS)) else {}
    return files | {manifest.NAME: read_bytes(path / manifest.NAME, JSON, within=path)}


def unpack(files: Mapping[str, bytes], path: Path) -> None:
    """Make a run directory of what `pack` gave, where nothing is yet."""
    if path.is_dir() and any(path.iterdir()):
        raise UsageError(f"{path} is not empty: name a new directory")
    for name, data in files.items():
        write_new(path / manifest.plain_name(name), data)
