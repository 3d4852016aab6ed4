"""Distill: a student that learns from a saved run, on the same data, read in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unrolled.core import discover
from unrolled.core.errors import UsageError
from unrolled.core.front import invocation
from unrolled.runs.run import Run, saved_config
from unrolled.runs.trust import data_of
from unrolled.training.api import train
from unrolled.training.progress import Progress

STUDENT = "sound-flow"  # the task of a student
TEACHER = "next-sample"
FROM_DATA = ("condition", "split", "seed")  # settings of the teacher's data that are the student's too


def distill(
    teacher: str | Path,
    data: Any = None,
    model: str | None = None,
    out: str | Path | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Run:
    """Train flows that generate sound in one pass, from a run of next-sample with a logistic mixture.

    `data` is what the teacher was trained on, which is opened only if it is named, or built in. `settings` are those of
    training, of the model and of the task `sound-flow`; how sound is read is as the teacher was trained.
    """
    config = saved_config(teacher)
    if config.task != TEACHER:
        raise UsageError(f"{teacher}: is a run of {config.task}; expected one of {TEACHER} as the teacher")
    again = invocation("distill", {}, f"{teacher} DATA")
    source = data_of(Path(teacher), config.source, config.given, data, again)
    own = discover.tasks.load(STUDENT).Config.model_fields
    kept = {f"task.{name}": value for name, value in config.task_settings.items() if name in own and name != "piece"}
    kept |= {f"data.{name}": dict(config.data)[name] for name in FROM_DATA}
    wanted = {**kept, "task.teacher_run": str(teacher), **dict(settings or {})}
    return train(source, STUDENT, model or "wavenet", out, settings=wanted, progress=progress)
