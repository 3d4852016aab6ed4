"""A query on its way through the memory of a run."""

from __future__ import annotations

from typing import Any

from unrolled.core.forward import evaluating
from unrolled.layers.memory.memory import Memory, Recalled
from unrolled.layers.memory.recaller import Recaller
from unrolled.runs.run import Run


def why_no_memory(run: Run) -> str | None:
    return None if isinstance(run.model, Recaller) else f"this {run.config.model} is not a memory with stored patterns"


def why_memory(run: Run) -> str | None:
    """Why what is asked of the positions of an input cannot be asked of a memory; None: it is none."""
    told = f"this {run.config.model} completes a pattern as a whole, by updates that have no gradients"
    return told if isinstance(run.model, Recaller) else None


def queried(run: Run, value: Any) -> tuple[Memory, Recalled]:
    """The memory, and where an input ends in it, with its path."""
    model = run.model
    assert isinstance(model, Recaller)
    batch, _ = run.task.example(value)
    with evaluating(model) as device:
        return model.body, model.found(batch.x[0].to(device), path=True)
