"""The modules of the standard library, without tests and without what was installed into it."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

from unrolled.core.config import Config
from unrolled.core.data_spec import BuiltinSpec
from unrolled.core.errors import DataError


def read(_: Config) -> list[Path]:
    root = Path(sysconfig.get_paths()["stdlib"])
    left_out = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}
    files: list[Path] = []
    for folder, folders, found in os.walk(root):
        folders[:] = [name for name in folders if name not in left_out]
        files += [Path(folder) / name for name in found if name.endswith(".py")]
    readable = [path for path in sorted(files) if _is_text(path)]
    if not readable:
        raise DataError("builtin:python-source: this Python was installed without the source of its library")
    return readable


def _is_text(path: Path) -> bool:
    """Not empty and UTF-8 throughout: a few old modules are in other encodings."""
    try:
        data = path.read_bytes()
        return bool(data.decode("utf-8")) and b"\0" not in data
    except (UnicodeDecodeError, OSError):
        return False


BUILTIN = BuiltinSpec(
    summary="the source of Python's standard library without its tests: code and comments",
    licence="PSF",
    size="about 12 MB",
    holds="text",
    use="next-token",
    read=read,
)
