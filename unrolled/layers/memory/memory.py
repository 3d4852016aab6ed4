"""What every memory does: store patterns, move a state one update on, and say its energy.

    store(X, V)      X [N, D], the patterns to remember, and what is read where one is recalled (X itself unless given)
    update(xi)       xi [B, D] -> xi [B, D], every number looked at once
    energy(xi)       E [B], which an asynchronous update never raises

`recall` repeats the update until nothing moves. The rows of a batch are independent.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from unrolled.core.errors import UsageError
from unrolled.layers.memory.saved_tables import Tables

Updates = Literal["asynchronous", "synchronous"]
Order = Literal["random", "fixed"]
FIXED, CYCLE, UNFINISHED = "fixed point", "two-cycle", "not converged"
BLOCK = 1 << 22  # numbers of [B, N] that are looked at together


class Recalled(NamedTuple):
    """Where states went."""

    state: Tensor
    """[B, D]"""
    steps: Tensor
    """[B] long: updates until a state stood still, or came back to where it was two updates ago"""
    how: list[str]
    """of each row: a fixed point, a two-cycle, or not converged"""
    energy: Tensor
    """[S + 1, B]: of the first state and after each update"""
    path: Tensor | None = None
    """[S + 1, B, D]: the states themselves, where they were asked for"""


class Memory(Tables):
    """Patterns X [N, D] of D numbers. Subclasses write `store`, `update` and `energy`."""

    TABLES = ("patterns", "values")
    patterns: Tensor  # [N, D]
    values: Tensor  # [N, D'], D' = 0 where none were given
    tolerance = 0.0  # a state that moves no further than this stands still

    def __init__(self, d: int) -> None:
        super().__init__()
        self.d = d
        self.register_buffer("patterns", torch.zeros(0, d))
        self.register_buffer("values", torch.zeros(0, 0))

    def fault(self, tables: dict[str, Tensor]) -> str:
        patterns, values = (tables[name] for name in self.TABLES)
        fits = patterns.dim() == values.dim() == 2 and patterns.shape[1] == self.d and len(patterns) == len(values)
        return "" if fits else "the sizes of its tables do not match"

    def store(self, patterns: Tensor, values: Tensor | None = None) -> None:
        """Remember these patterns [N, D], with values [N, D'] or without, and forget all others."""
        if values is not None and len(values) != len(patterns):
            raise UsageError(f"there are {len(patterns)} patterns, but {len(values)} values")
        found = self.checked(patterns, "pattern")
        self.keep({"patterns": found.clone(), "values": found.new_zeros(len(found), 0) if values is None else values})

    def chosen(self) -> dict[str, float]:
        """Settings that the stored patterns decided, by name."""
        return {}

    def read(self, xi: Tensor) -> Tensor:
        """What is read at a state: the state itself or, of a memory with values, that of the most similar pattern."""
        return self.values[self.nearest(xi)] if self.values.shape[1] else xi

    def update(self, xi: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define update(xi) -> xi")

    def energy(self, xi: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define energy(xi) -> E")

    def checked(self, rows: Tensor, what: str) -> Tensor:
        """Rows [n, D] of the right size and alphabet."""
        if rows.dim() != 2 or rows.shape[1] != self.d:
            raise UsageError(f"a {what} has {self.d} numbers here, found an array of shape {list(rows.shape)}")
        if len(rows) == 0:
            raise UsageError(f"there is no {what}; give at least one")
        if not bool(torch.isfinite(rows).all()):
            raise UsageError(f"a {what} holds a number that is not finite")
        return rows

    def overlap(self, xi: Tensor) -> Tensor:
        """[B, N] cosines between states and stored patterns: 1 where they are equal up to their length."""
        self.require_patterns()
        lengths = xi.norm(dim=1, keepdim=True) * self.patterns.norm(dim=1)  # [B, N]
        return xi @ self.patterns.T / lengths.clamp_min(torch.finfo(xi.dtype).tiny)

    def nearest(self, xi: Tensor) -> Tensor:
        """[B] long: the stored pattern that a state is most like."""
        found = [self.overlap(some).argmax(1) for some in blocks(xi, len(self.patterns))]
        return torch.cat(found)

    def require_patterns(self) -> None:
        if len(self.patterns) == 0:
            raise UsageError("the memory is empty; store patterns first")

    @torch.no_grad()
    def recall(self, xi: Tensor, most: int = 100, path: bool = False) -> Recalled:
        """Update states [B, D] until they stand still, `most` times at most. A row that does, or that is in a cycle, is
        not updated any more, so that its end does not depend on the others."""
        self.require_patterns()
        state = self.checked(xi, "query").to(self.patterns.dtype)
        steps = torch.full((len(state),), most, device=state.device)  # [B]
        how, moving = [UNFINISHED] * len(state), torch.arange(len(state), device=state.device)
        energy, states, before = [self.energy(state)], [state], state
        for step in range(most):
            after, E = state.clone(), energy[-1].clone()
            after[moving] = self.update(state[moving])
            E[moving] = self.energy(after[moving])
            still = self._still(after[moving], state[moving])
            back = self._still(after[moving], before[moving]) & ~still if step else torch.zeros_like(still)
            for row, stood in zip(moving[still | back].tolist(), still[still | back].tolist()):
                steps[row], how[row] = step, FIXED if stood else CYCLE
            moving, before, state = moving[~(still | back)], state, after
            energy.append(E)
            if path:
                states.append(state)
            if len(moving) == 0:
                break
        return Recalled(state, steps, how, torch.stack(energy), torch.stack(states) if path else None)

    def _still(self, after: Tensor, before: Tensor) -> Tensor:
        """[B] whether rows are where they were."""
        return (after - before).norm(dim=1) <= self.tolerance * before.norm(dim=1)


class SpinMemory(Memory):
    """Patterns and states of -1 and +1, updated one bit after the other or all bits from the state before.

    Subclasses write `store`, `energy`, `_together` and `_in_turn`. `degree` is that of the energy in the overlaps;
    None: it is exponential.
    """

    degree: int | None = 2

    def __init__(self, d: int, updates: Updates = "asynchronous", order: Order = "random", seed: int = 0) -> None:
        super().__init__(d)
        self.updates, self.order, self.seed = updates, order, seed

    def update(self, xi: Tensor) -> Tensor:
        """In turn, every bit once; the random order is a function of the seed. A row that no bit leaves stays."""
        after = self._together(xi)
        if self.updates == "synchronous":
            return after
        moves = (after != xi).any(1)  # [B]
        if not bool(moves.any()):
            return after
        order = torch.arange(self.d)
        if self.order == "random":
            order = torch.randperm(self.d, generator=torch.Generator().manual_seed(self.seed))
        after[moves] = self._in_turn(xi[moves], order.tolist())
        return after

    def _together(self, xi: Tensor) -> Tensor:
        raise NotImplementedError

    def _in_turn(self, xi: Tensor, order: list[int]) -> Tensor:
        raise NotImplementedError

    def checked(self, rows: Tensor, what: str) -> Tensor:
        rows = super().checked(rows, what)
        if not bool((rows.abs() == 1).all()):
            odd = rows[rows.abs() != 1][0].item()
            told = "; as_signs turns 0 and 1 into -1 and +1" if bool(((rows == 0) | (rows == 1)).all()) else ""
            raise UsageError(f"a {what} consists of -1 and +1 here, found {odd:g}{told}")
        return rows


def as_signs(bits: Tensor) -> Tensor:
    """0 and 1 as -1 and +1.

    >>> as_signs(torch.tensor([0.0, 1.0])).tolist()
    [-1.0, 1.0]
    """
    if not bool(((bits == 0) | (bits == 1)).all()):
        raise UsageError("bits are 0 and 1")
    return 2 * bits - 1


def as_bits(signs: Tensor) -> Tensor:
    """-1 and +1 as 0 and 1.

    >>> as_bits(torch.tensor([-1.0, 1.0])).tolist()
    [0.0, 1.0]
    """
    return (signs + 1) / 2


def blocks(rows: Tensor, width: int) -> list[Tensor]:
    """Rows [B, D] some at a time, so that no table [B, width] is larger than a block."""
    return [*rows.split(max(1, BLOCK // max(width, 1)))]
