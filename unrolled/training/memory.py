"""Out of memory: refuse a model that is too large before it is built, and say which batch size would have fitted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from unrolled.core.errors import OutOfMemory, UnrolledError
from unrolled.core.forward import forward
from unrolled.core.front import option
from unrolled.core.outside import is_out_of_memory
from unrolled.core.task import Model, Task
from unrolled.runs import closed_form, cost
from unrolled.runs.build import on_paper
from unrolled.runs.config import RunConfig
from unrolled.training.batches import first_batch
from unrolled.training.optimiser import OPTIMISERS

NUMBER = 4  # bytes


def require_room(config: RunConfig, task: Task) -> None:
    """Refuse a model whose weights alone, as training holds them, are more than this machine has memory for.

    Without this the system would stop the process, or another one, at the first step.
    """
    counted = _on_paper(config, task)
    room = cost.available_bytes() if torch.device(config.device).type == "cpu" else None
    if counted is None or room is None:
        return
    weights, others = counted
    copies = 1 if closed_form.applies(config, task.ports()) else OPTIMISERS[config.optimiser.optimiser].copies
    needed = NUMBER * (weights * copies + others)
    if needed > room:
        raise OutOfMemory(
            f"the model '{config.model}' has {weights + others:,} parameters with these settings and this data; "
            f"training needs at least {needed:,} bytes, but only {room:,} are free: use fewer or narrower "
            "layers, or a smaller vocabulary"
        )


def _on_paper(config: RunConfig, task: Task) -> tuple[int, int] | None:
    """How many weights and other numbers the model has; nothing is allocated. None where it cannot be told so."""
    try:
        model = on_paper(config, task.ports(), task.ACCEPTS)
    except (RuntimeError, NotImplementedError, ValueError, TypeError, UnrolledError):
        return None  # what is wrong with it is told when it is built
    return sum(p.numel() for p in model.parameters()), sum(b.numel() for b in model.buffers())


@contextmanager
def explain_memory(config: RunConfig, task: Task, model: Model) -> Iterator[None]:
    """Turn an allocation failure into one sentence with a batch size that was tried and fits."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    else:
        return
    model.zero_grad(set_to_none=True)
    rows = _rows_that_fit(config, task, model)
    small = f"even one row does not fit: reduce {option('length')} or the size of the model"
    advice = f"{option('batch_size', rows)} fits" if rows else small
    raise OutOfMemory(f"out of memory with batches of {config.batching.batch_size} rows; {advice}")


def _rows_that_fit(config: RunConfig, task: Task, model: Model) -> int:
    batch = first_batch(config, task, model)
    rows = config.batching.batch_size // 2
    while rows >= 1:
        try:
            y, _ = forward(model, batch.first(rows))
            y.float().logsumexp(-1).sum().backward()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            model.zero_grad(set_to_none=True)
            rows //= 2
        else:
            model.zero_grad(set_to_none=True)
            return rows
    return 0
