"""Our AdamW and SGD are torch's, to the last bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from unrolled.runs.config import Optimiser as Settings
from unrolled.training.optimiser import OPTIMISERS, Optimiser

STEPS, WAITS = 20, 5


class Weights(nn.Module):
    """Matrices and vectors in turn, one in double precision, one that is not trained, one whose gradient comes late."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        shapes = [(7,), (5, 3), (), (2, 3, 4), (33, 17), (4, 4), (6,)]
        self.all = nn.ParameterList(nn.Parameter(torch.randn(shape)) for shape in shapes)
        self.precise = nn.Parameter(torch.randn(3, 2, dtype=torch.float64))
        self.all[5].requires_grad_(False)

    def trained(self) -> list[Tensor]:
        return [weight for weight in self.parameters() if weight.requires_grad]

    def draw_gradients(self, step: int) -> None:
        random = torch.Generator().manual_seed(step)
        for weight in self.trained():
            weight.grad = torch.randn(weight.shape, generator=random).to(weight)
        if step < WAITS:
            self.all[4].grad = None


def rate(step: int) -> float:
    return 0.01 * (step + 1) / STEPS


def settings(kind: str, decay: float) -> Settings:
    return Settings(optimiser=kind, weight_decay=decay, betas=(0.9, 0.98))  # type: ignore[arg-type]


def of_torch(model: Weights, kind: str, decay: float) -> Any:
    weights = model.trained()
    groups = [
        {"params": [w for w in weights if w.dim() >= 2], "weight_decay": decay},
        {"params": [w for w in weights if w.dim() < 2], "weight_decay": 0.0},
    ]
    if kind == "sgd":
        return torch.optim.SGD(groups, lr=1, momentum=0.9, nesterov=True)
    return torch.optim.AdamW(groups, lr=1, betas=(0.9, 0.98), fused=True)


def ours(model: Weights, kind: str, decay: float = 0.1) -> Optimiser:
    return OPTIMISERS[kind](model, settings(kind, decay))


def take(optimiser: Optimiser, model: Weights, steps: range) -> None:
    for step in steps:
        optimiser.forget_gradients()
        model.draw_gradients(step)
        optimiser.rate = rate(step)
        optimiser.step()


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("kind", OPTIMISERS)
def test_every_weight_and_all_memory_are_those_of_torch(kind: str, decay: float) -> None:
    mine, theirs = Weights(), Weights()
    optimiser, reference = ours(mine, kind, decay), of_torch(theirs, kind, decay)
    take(optimiser, mine, range(STEPS))
    for step in range(STEPS):
        theirs.draw_gradients(step)
        for group in reference.param_groups:
            group["lr"] = rate(step)
        reference.step()
    assert [torch.equal(a, b) for a, b in zip(mine.parameters(), theirs.parameters())] == [True] * 8
    state = reference.state_dict()["state"]
    memory = {f"{i}.{name}": value for i, entry in state.items() for name, value in entry.items()}
    assert optimiser.export().keys() == memory.keys()
    assert all(torch.equal(value, memory[name]) for name, value in optimiser.export().items())


@pytest.mark.parametrize("stop", [1, WAITS + 2])
@pytest.mark.parametrize("kind", OPTIMISERS)
def test_what_was_exported_goes_on_as_if_nothing_had_been(kind: str, stop: int) -> None:
    whole, resumed = Weights(), Weights()
    take(ours(whole, kind), whole, range(STEPS))
    first = ours(resumed, kind)
    take(first, resumed, range(stop))
    second = ours(resumed, kind)
    second.restore(first.export())
    for value in first.export().values():
        value.zero_()  # the memory of the second is a copy
    take(second, resumed, range(stop, STEPS))
    assert [torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters())] == [True] * 8


@pytest.mark.parametrize(("name", "value"), [
    ("99.exp_avg", torch.zeros(5, 3)),
    ("0.other", torch.zeros(5, 3)),
    ("0.exp_avg", torch.zeros(3)),
    ("0.step", torch.zeros(2)),
    ("x.step", torch.zeros(())),
])  # fmt: skip
def test_memory_that_is_not_of_these_weights_is_refused(name: str, value: Tensor) -> None:
    optimiser = ours(model := Weights(), "adamw")
    take(optimiser, model, range(1))
    good = {key: kept for key, kept in optimiser.export().items() if key != "0.exp_avg" or name != "0.other"}
    with pytest.raises((ValueError, LookupError)):
        optimiser.restore(good | {name: value})


@pytest.mark.parametrize("kind", OPTIMISERS)
def test_what_a_weight_costs_in_memory_is_told(kind: str) -> None:
    optimiser = ours(model := Weights(), kind)
    take(optimiser, model, range(WAITS + 1))
    large = [value for value in optimiser.memory[0].values() if value.dim()]
    assert optimiser.copies == 2 + len(large)
