"""The laws of memories: rows are independent, an asynchronous update never raises the energy, patterns are saved."""

from __future__ import annotations

from collections.abc import Callable

import torch

from unrolled.layers.memory.memory import Memory, SpinMemory
from unrolled.testing import law as laws
from unrolled.testing.law import Law

PATTERNS, STATES, UPDATES = 6, 9, 4


def check_memory(memory: Memory, *, fresh: Callable[[], Memory] | None = None, seed: int = 0) -> list[str]:
    """Put a memory through the laws of memories; returns those that hold. `fresh` makes another one like it."""
    random = torch.Generator().manual_seed(seed)
    draw = torch.randn(PATTERNS + STATES, memory.d, generator=random)
    rows = torch.where(draw >= 0, 1.0, -1.0) if isinstance(memory, SpinMemory) else draw
    patterns, xi = rows[:PATTERNS], rows[PATTERNS:]
    passed = [laws.FORM, laws.ROWS, laws.STATE]
    with Law(laws.FORM) as law:
        memory.store(patterns)
        after = memory.update(xi)
        law.holds(after.shape == xi.shape, f"update gives {list(after.shape)} for states {list(xi.shape)}")
        law.holds(memory.energy(xi).shape == (STATES,), "energy must give one number for each state")
    with Law(laws.ROWS) as law:
        for row in range(STATES):
            law.same(memory.update(xi[row : row + 1]), after[row : row + 1], 1e-5, "the update of a row alone", row=row)
    with Law(laws.STATE) as law:
        law.holds(torch.equal(xi, rows[PATTERNS:]), "update must not change the state that it is given")
    if not (isinstance(memory, SpinMemory) and memory.updates == "synchronous"):
        passed.append(laws.ENERGY)
        with Law(laws.ENERGY) as law:
            for step in range(UPDATES):
                before, later = memory.energy(xi), memory.energy(xi := memory.update(xi))
                rise = float((later - before).max())
                law.holds(rise <= 1e-4 * float(before.abs().max() + 1), f"update {step + 1} raised it by {rise:g}")
    if fresh is not None:
        passed.append(laws.SAVING)
        with Law(laws.SAVING) as law:
            other = fresh()
            other.load_state_dict(memory.state_dict())
            law.same(other.update(xi), memory.update(xi), 0.0, "an update after saving and loading")
    return passed
