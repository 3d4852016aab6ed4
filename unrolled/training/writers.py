"""Who writes what a run leaves behind: the first of its processes; the others go through the same motions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor, nn

from unrolled.runs.storage.checkpoint import Checkpoints
from unrolled.runs.storage.directory import RunDirectory
from unrolled.runs.storage.tensorboard import Events


class Unwritten(RunDirectory):
    """The run directory as processes other than the first see it: they read it."""

    def append_metrics(self, values: Mapping[str, Any]) -> None: ...

    def cut_metrics(self, step: int, n_bytes: int | None = None) -> None: ...

    def seal(self, names: Iterable[str] = ()) -> None: ...

    def sweep(self) -> None: ...

    def _replace(self, name: str, pieces: Iterable[Any], size: int) -> None: ...


class _NoCheckpoints(Checkpoints):
    def save(
        self, step: int, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], keep: int | None = None
    ) -> None: ...


class _NoEvents(Events):
    def note(self, step: int, values: Mapping[str, float]) -> None: ...


def writers(run: RunDirectory, model: nn.Module, rank: int) -> tuple[Checkpoints, Events]:
    """The checkpoints and the curves of a run of a model, for one of its processes."""
    checkpoints, curves = run.path / "checkpoints", run.path / "tensorboard"
    if rank == 0:
        return Checkpoints(checkpoints, model), Events(curves)
    return _NoCheckpoints(checkpoints, model), _NoEvents(curves)
