"""Which batches a model is trained on: whatever needs one, to train or to try, asks here."""

from __future__ import annotations

from unrolled.core.batch import Batch
from unrolled.core.forward import carries
from unrolled.core.task import Model, Sampler, Task
from unrolled.runs.config import RunConfig


def sampler_of(config: RunConfig, task: Task, model: Model) -> Sampler:
    """The sampler of a run: rows that follow one another where the state is carried, or cut between them."""
    windows = config.batching.windows
    return task.sampler(config.batching, carried=windows == "cut" or carries(model, windows), seed=config.seed)


def first_batch(config: RunConfig, task: Task, model: Model) -> Batch:
    """What the first step is trained on."""
    return sampler_of(config, task, model).batch(0).to(config.device)
