"""What a checkpoint holds: tensors of the whole model, whatever number of processes train it, and where training is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from unrolled.core.state import State
from unrolled.runs.storage.checkpoint import flatten, unflatten
from unrolled.training.guard import Guard
from unrolled.training.optimiser import Optimiser
from unrolled.training.processes import Processes


@dataclass
class Position:
    """Where training is: everything in a checkpoint beside tensors."""

    step: int = 0
    looked: int = -1  # the step of the last evaluation
    best: float = math.inf
    best_step: int = 0
    stale: int = 0  # evaluations since the best one
    plateau: float = 1.0  # what the plateau schedule has left of the rate
    elapsed: float = 0.0  # seconds of the budget used
    training: float = 0.0  # of these, seconds in the loop
    target: int = 0  # the step to roll back to: of the last checkpoint that was due, not made by a clock or a signal
    guard: Guard = field(default_factory=Guard)

    def facts(self) -> dict[str, Any]:
        return {**vars(self), "guard": self.guard.state(), "best": self.best if math.isfinite(self.best) else None}

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Position:
        known = {name: facts[name] for name in vars(cls()) if name in facts and name not in ("guard", "best")}
        return cls(**known, best=math.inf if facts["best"] is None else facts["best"], guard=Guard(**facts["guard"]))


def saved(
    processes: Processes, model: nn.Module, optimiser: Optimiser, state: State
) -> tuple[dict[str, Tensor], Any]:  # fmt: skip
    """The tensors of a checkpoint, and the structure of the carried state among them."""
    memory = optimiser.export()
    carried, structure = flatten(processes.joined(state))
    parts = {
        "model": processes.whole(model.state_dict()),
        "optimiser": processes.whole(memory, optimiser.weights_of(memory)),
        "state": carried,
    }
    return {f"{part}.{name}": value for part, own in parts.items() for name, value in own.items()}, structure


def restored(
    processes: Processes,
    model: nn.Module,
    optimiser: Optimiser,
    tensors: Mapping[str, Tensor],
    structure: Any,
    some_state: Callable[[], State],
) -> State:
    """Take back what `saved` gave; the carried state of this process's rows."""

    def part(name: str) -> dict[str, Tensor]:
        return {key.removeprefix(name): value for key, value in tensors.items() if key.startswith(name)}

    state = None if structure is None else unflatten(part("state."), structure, some_state())
    own, memory = part("model."), part("optimiser.")
    processes.load(model, own)
    optimiser.restore(processes.divided(memory, optimiser.weights_of(memory)))
    return processes.own_state(state)
