"""A task that learns from a saved run, its teacher, beside its data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from unrolled.core.task import Task


@runtime_checkable
class Taught(Protocol):
    """The teacher is loaded for it before its data is prepared; a saved run of the task needs it no more."""

    @property
    def teacher_run(self) -> str | None:
        """Where the teacher is; None: there is none."""
        ...

    def learn_from_run(self, teacher: Task, model: Any, place: str) -> None:
        """Take the teacher: its task and its model, and where it is, for messages."""
        ...
