"""Out of memory: say which batch size would have fitted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from unrolled.core.causal import Encoder, begin
from unrolled.core.errors import OutOfMemory
from unrolled.core.front import option
from unrolled.core.outside import is_out_of_memory
from unrolled.core.task import Model, Task
from unrolled.runs.config import RunConfig


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
    small = f"even one row does not fit: make the model or {option('length')} smaller"
    advice = f"{option('batch_size', rows)} fits" if rows else small
    raise OutOfMemory(f"out of memory with batches of {config.batching.batch_size} rows; {advice}")


def _rows_that_fit(config: RunConfig, task: Task, model: Model) -> int:
    batch = task.sampler(config.batching, carried=True, seed=config.seed).batch(0).to(config.device)
    rows = config.batching.batch_size // 2
    while rows >= 1:
        try:
            if isinstance(model, Encoder):
                real = torch.ones(batch.x.shape[:2], dtype=torch.bool) if batch.mask is None else batch.mask
                y = model(batch.x[:rows], real[:rows].to(batch.x.device))[0]
            else:
                source, mask = (None if part is None else part[:rows] for part in (batch.source, batch.source_mask))
                decoder, state = begin(model, source, mask)
                y, _ = decoder(batch.x[:rows], state)
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
