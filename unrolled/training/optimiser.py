"""Optimisers, and their state as named tensors for checkpoints."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.runs.config import Optimiser


def make(model: nn.Module, settings: Optimiser) -> torch.optim.Optimizer:
    """AdamW or SGD; decay acts on matrices only, for a decayed bias has no meaning."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if settings.optimiser == "sgd":
        return torch.optim.SGD(groups, lr=settings.lr, momentum=0.9, nesterov=True)
    return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, fused=True)


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = rate


def export(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's memory as `number.name` -> tensor."""
    state = optimiser.state_dict()["state"]
    return {f"{i}.{name}": value for i, entry in state.items() for name, value in entry.items() if value is not None}


def restore(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        number, name = key.split(".", 1)
        state.setdefault(int(number), {})[name] = value.clone()
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
