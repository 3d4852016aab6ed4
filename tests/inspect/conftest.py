"""Small runs, and ways to put models into them whose answers are known."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import numpy as np
import pytest
import torch
from torch import nn

import unrolled
from unrolled.core.causal import Causal, Conditional
from unrolled.core.compose import Each
from unrolled.layers.parts.assembled import Decoder
from unrolled.runs.run import Run

LINES = [
    f"a state is a value {word}" for word in ("passed in", "returned", "never kept", "cut anywhere", "carried")
] * 8
ROLLS = [np.eye(6, dtype=np.uint8)[(np.arange(12) + i) % 6] for i in range(12)]
SETTINGS = {"steps": 3, "batch_size": 4, "evaluate_tokens": 50, "warmup": 1, "threads": 1, "d_embedding": 6}


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """`small("gru", {"d_state": 8})`: three steps on a few lines, or with task="next-frame" on a few rolls."""
    folder, made, numbers = tmp_path_factory.mktemp("small"), {}, count()

    def run(model: str, settings: dict[str, object] | None = None, task: str = "next-token") -> Run:
        key = f"{task}-{model}-{settings}"
        if key not in made:
            data = LINES if task == "next-token" else ROLLS
            both = SETTINGS | (settings or {})
            made[key] = unrolled.train(
                data, task=task, model=model, out=folder / f"{model}-{next(numbers)}", settings=both
            )
        return made[key]

    return run


@pytest.fixture(scope="session")
def planted(small: Callable[..., Run]) -> Callable[[Causal | Conditional], Run]:
    """A run on lines whose model is this one."""
    run = small("memoryless", {"d_state": 4})
    return lambda model: Run(run.directory, run.config, run.task, model.eval())


@pytest.fixture(scope="session")
def around(small: Callable[..., Run]) -> Callable[[nn.Module, int, int], Decoder]:
    """`around(body, d_in, d_out)`: a body between an embedding and a head that fit the lines."""
    n = small("memoryless", {"d_state": 4}).task.ports().n_tokens

    def assemble(body: nn.Module, d_in: int, d_out: int) -> Decoder:
        torch.manual_seed(0)
        causal = body if isinstance(body, Causal) else Each(body)
        return Decoder(nn.Embedding(n, d_in), causal, nn.Linear(d_out, n))

    return assemble
