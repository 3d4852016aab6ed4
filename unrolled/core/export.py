"""What an export is: a way to carry a saved run elsewhere, in a file.

A file in `unrolled/exports/` is one target: it declares `EXPORT = ExportSpec(...)`, which is checked once, when it is
made. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.core.config import Config
from unrolled.core.spec import WrongField, miscalled, misconfigured, misnamed


class Refused(Exception):
    """Why a run cannot be carried to a target, as the end of a sentence after "because"."""


class Written(NamedTuple):
    """What an export wrote."""

    files: list[Path]
    difference: float | None
    """the largest difference between the outputs of the export and those of the run; None: it could not be measured"""
    checked: str
    """how that was measured, or why it was not"""


@dataclass(frozen=True, kw_only=True)
class ExportSpec:
    """A file of a target that runs can be exported to, in values."""

    summary: str
    """What it makes, in a sentence, for lists."""
    suffix: str
    """What the name of the file ends in: ".onnx"."""
    request: type[Config]
    """Its settings, each with a default."""
    write: Callable[[Any, Path, Any], Written]
    """write(run, out, request): make the files and check them against the run; `Refused` where that cannot be. Nothing
    stays of an export that fails."""
    why_not: Callable[[Any], str | None]
    """why_not(run): why this run cannot be exported, as the end of a sentence after "because"; None: it can."""
    aliases: tuple[str, ...] = ()
    """Other names that users may type."""

    def __post_init__(self) -> None:
        for name, why in _faults(self):
            raise WrongField(ExportSpec, name, why)


ARGUMENTS: Mapping[str, tuple[str, ...]] = {"write": ("run", "out", "request"), "why_not": ("run",)}


def _faults(spec: ExportSpec) -> Iterator[tuple[str, str]]:
    """Fields with a wrong value, and what is wrong."""
    if not isinstance(spec.summary, str):
        yield "summary", f"invalid value summary = {spec.summary!r}: expected a string"
    if not isinstance(spec.suffix, str) or not spec.suffix.startswith("."):
        yield "suffix", f'invalid value suffix = {spec.suffix!r}: expected the end of a file name, such as ".onnx"'
    yield from misnamed(spec.aliases)
    yield from misconfigured(spec.request, "request")
    for name, arguments in ARGUMENTS.items():
        if why := miscalled(vars(spec)[name], name, arguments):
            yield name, why
