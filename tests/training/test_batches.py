"""What a model is trained on is one rule: the loop, the choice of the precision and the advice on memory share it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.small import DATA, QUICK
from unrolled.core.causal import decoder_of
from unrolled.core.errors import OutOfMemory
from unrolled.core.forward import carries
from unrolled.core.task import Model, Task
from unrolled.data.sampler import StreamRows, Windows
from unrolled.runs import build
from unrolled.runs.config import RunConfig
from unrolled.training.api import configure
from unrolled.training.batches import first_batch, sampler_of
from unrolled.training.memory import explain_memory

FULL: dict[str, dict[str, Any]] = {"gru": {}, "transformer": {"window": 0}}  # attention to all that is behind


def made(data: str, model: str, **settings: object) -> tuple[RunConfig, Task, Model]:
    task, source, own = DATA[data]
    config = configure(task, model, source, QUICK | own | settings)
    prepared = build.make_task(config)
    prepared.prepare(source)
    return config, prepared, build.build(config, prepared.ports(), prepared.ACCEPTS)


@pytest.mark.parametrize(
    ("model", "windows", "kind", "carried"),
    [
        ("gru", "auto", StreamRows, True),
        ("gru", "carried", StreamRows, True),
        ("gru", "cut", StreamRows, False),
        ("gru", "random", Windows, False),
        ("transformer", "auto", Windows, False),
        ("transformer", "carried", StreamRows, True),
        ("transformer", "cut", StreamRows, False),
        ("transformer", "random", Windows, False),
    ],
)
def test_rows_follow_one_another_where_the_state_is_carried_or_cut(
    model: str, windows: str, kind: type, carried: bool
) -> None:
    config, task, built = made("a stream with longer gradients", model, windows=windows, **FULL[model])
    assert type(sampler_of(config, task, built)) is kind
    assert carries(built, windows) is carried
    batch = first_batch(config, task, built)
    assert torch.equal(batch.x, sampler_of(config, task, built).batch(0).x)
    assert batch.x.shape[1] == (8 if kind is StreamRows else 5)  # back, or length


@pytest.mark.parametrize(
    ("data", "model"),
    [
        ("a stream", "gru"),
        ("a stream", "transformer"),
        ("texts of a class", "gru"),
        ("classes of texts", "gru"),
        ("rolls", "gru"),
        ("pairs", "seq2seq"),
        ("strokes by frames", "gru"),
    ],
)
def test_a_batch_size_that_fits_is_found_for_every_kind_of_model(data: str, model: str) -> None:
    config, task, built = made(data, model, batch_size=8)

    def full(_: Any, given: tuple[Any, ...]) -> None:
        if given[0].shape[0] > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 12000000000000 bytes")

    decoder_of(built).register_forward_pre_hook(full)
    with (
        pytest.raises(OutOfMemory, match=r"with batches of 8 rows; .*batch.size\D*2"),
        explain_memory(config, task, built),
    ):
        raise MemoryError
    assert all(parameter.grad is None for parameter in built.parameters())
