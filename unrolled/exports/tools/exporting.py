"""Exporting a run: `unrolled.export("runs/mine", "onnx")`, the function behind the command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unrolled.core import discover
from unrolled.core.errors import UsageError
from unrolled.core.export import Refused, Written
from unrolled.core.front import option
from unrolled.runs.run import Run, load
from unrolled.runs.storage import atomic

FOLDER = "exports"


def export(
    run: Run | str | Path, to: str, out: str | Path | None = None, settings: Mapping[str, Any] | None = None
) -> Written:
    """Carry a run to a target ("onnx", "page", "torch") and compare what was made with the run.

    Without `out` the file goes to the folder `exports` of the run; one of that name is replaced. A run that cannot be
    exported is an error with the reason, and nothing is written.
    """
    discover.exports.require(to)
    spec = discover.export(to)
    asked = spec.request.parse(settings or {})
    opened = run if isinstance(run, Run) else load(run)
    target = _target(opened, spec.suffix, out)
    atomic.require_replaceable(target)
    with discover.models.own_mistakes():
        try:
            return spec.write(opened, target, asked)
        except Refused as refused:
            raise UsageError(f"{opened.path} cannot be exported to {to}, because {refused}") from refused.__cause__


def _target(run: Run, suffix: str, out: str | Path | None) -> Path:
    if out is None:
        return run.path / FOLDER / f"{run.path.resolve().name}{suffix}"
    if Path(out).suffix != suffix:
        raise UsageError(
            f"{out}: the file of this export ends in {suffix}; name it with {option('out', f'NAME{suffix}')}"
        )
    return Path(out)


def reasons(run: Run) -> dict[str, str | None]:
    """By target, why a run cannot be exported there; None: it can."""
    with discover.models.own_mistakes():
        return {name: discover.export(name).why_not(run) for name in discover.exports.names()}
