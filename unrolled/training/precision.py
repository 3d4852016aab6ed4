"""Which arithmetic is faster here: asked of the machine, not guessed, and written into the run."""

from __future__ import annotations

import copy
import time
from contextlib import nullcontext
from typing import Any

import torch

from unrolled.core.forward import forward
from unrolled.core.task import Model, Task
from unrolled.runs.config import Optimiser, RunConfig
from unrolled.training.batches import first_batch

TRIALS = 3


def choose_precision(config: RunConfig, task: Task, model: Model) -> Optimiser:
    """The optimiser settings with precision = auto resolved to the faster of float32 and bfloat16."""
    settings = config.optimiser
    if settings.precision != "auto":
        return settings
    times = {name: _seconds(config, task, copy.deepcopy(model), name) for name in ("float32", "bfloat16")}
    return settings.model_copy(update={"precision": min(times, key=lambda name: times[name])})


def _seconds(config: RunConfig, task: Task, model: Model, precision: str) -> float:
    """The best time of a few forward and backward passes on the first batch."""
    batch = first_batch(config, task, model)
    best = float("inf")
    for _ in range(TRIALS):
        before = time.perf_counter()
        device = torch.device(config.device).type
        with torch.autocast(device, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
            y, _ = forward(model, batch)
        total, count = task.loss(y.float(), batch)
        (total / count).backward()
        best = min(best, time.perf_counter() - before)
    return best


def autocast(config: RunConfig) -> Any:
    """bfloat16 products where asked for."""
    if config.optimiser.precision == "bfloat16":
        return torch.autocast(torch.device(config.device).type, dtype=torch.bfloat16)
    return nullcontext()
