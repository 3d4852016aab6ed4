"""A run against the same training written down in a few lines of plain torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from unrolled.core.state import detach
from unrolled.runs import build
from unrolled.runs.run import Run

Fit = Callable[..., Run]
STEPS, WARMUP = 30, 5


def rate(schedule: str, step: int) -> float:
    """Up in WARMUP steps; then flat for half of the steps and down in a straight line, or by a cosine from step 20."""
    rise = min(1.0, (step + 1) / WARMUP)
    if schedule == "constant":
        return rise
    if schedule == "cosine":
        return rise * (0.5 + 0.5 * math.cos(math.pi * max(0, step - 20) / (STEPS - 20)))
    return rise * min(1.0, (STEPS - step) / (STEPS / 2))


def by_hand(run: Run, file: Any, carried: bool) -> dict[str, torch.Tensor]:
    """The weights after all steps."""
    settings, batching = run.config.optimiser, run.config.batching
    task = build.make_task(run.config)
    task.prepare(file)
    sampler = task.sampler(batching, carried=True, seed=run.config.seed)
    model: Any = build.build(run.config, task.ports(), task.ACCEPTS).train()
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    if settings.optimiser == "sgd":
        optimiser: Any = torch.optim.SGD(groups, momentum=0.9, nesterov=True)
    else:
        optimiser = torch.optim.AdamW(groups, betas=settings.betas)
    state, number = None, 0
    for step in range(STEPS):
        optimiser.zero_grad()
        for _ in range(settings.accumulate):
            batch = sampler.batch(number)
            number += 1
            y, state = model(batch.x, None if batch.fresh or not carried else state)
            state = detach(state)
            loss = F.cross_entropy(y.flatten(0, 1), batch.y.flatten(), ignore_index=0)
            (loss / settings.accumulate).backward()
        gradient = torch.cat([p.grad.flatten() for p in model.parameters()])
        for p in model.parameters():
            p.grad *= min(1.0, (settings.clip or math.inf) / (gradient.norm().item() + 1e-6))
        for group in optimiser.param_groups:
            group["lr"] = settings.lr * rate(settings.schedule, step)
        optimiser.step()
    return dict(model.state_dict())


@pytest.mark.parametrize("settings", [
    {}, {"schedule": "cosine"}, {"schedule": "constant", "weight_decay": 0.5}, {"accumulate": 2, "clip": 0.2},
    {"optimiser": "sgd", "lr": 0.1, "clip": None}, {"windows": "cut"}, {"betas": (0.5, 0.9), "tied": True},
], ids=str)  # fmt: skip
def test_a_run_is_what_it_says(fit: Fit, settings: dict[str, Any], tmp_path: Any) -> None:
    settings = {"lr": 0.005, "warmup": WARMUP, "steps": STEPS, "d_embedding": 12} | settings
    run = fit("run", settings)
    assert run.result["best_step"] == STEPS  # so that the weights that were kept are the last
    tokens = STEPS * run.config.batching.batch_size * run.config.batching.length * run.config.optimiser.accumulate
    speed = tokens / max(run.result["training_seconds"], 0.01)
    assert run.result["tokens_per_second"] == pytest.approx(speed, rel=0.5)
    expected = by_hand(run, tmp_path / "text.txt", carried=settings.get("windows") != "cut")
    found = run.directory.read_tensors("model.safetensors")
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-6)
