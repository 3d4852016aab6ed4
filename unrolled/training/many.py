"""What several processes do together, over whatever lets them talk (`Line`): the rows of each, sums, gradients, states.

Gradients are added up in one fixed order of weights after the backward pass, in pieces of PIECE numbers. Torch's DDP
sorts them anew after its first step, so that a resumed run would add in another order (docs/decisions/0043).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from unrolled.core import state as states
from unrolled.core.batch import Batch
from unrolled.core.sharing import Others, span
from unrolled.core.state import State
from unrolled.training.processes import GaveUp

Value = TypeVar("Value")

PIECE = 1 << 23  # numbers that are added up at once


class Line(Protocol):
    """How processes talk; all of them call the same in the same order."""

    rank: int
    n: int

    def sum(self, values: Tensor) -> None:
        """Add up in place what all of them have."""
        ...

    def each(self, value: Value) -> list[Value]:
        """What each of them has, by rank."""
        ...

    def first(self, value: Value) -> Value:
        """What the first of them has."""
        ...

    def wait(self) -> None: ...

    def close(self) -> None: ...


class Many:
    """One of several processes."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.others: Others | None = self
        self.rank, self.n = line.rank, line.n

    # ---- what only one can say

    def first(self, make: Callable[[], Value]) -> Value:
        return self.line.first(make() if self.rank == 0 else None)  # type: ignore[return-value]

    def heard(self, now: float, asked: bool) -> tuple[float, bool]:
        own = [now if self.rank == 0 else 0.0, float(asked)]
        clock, stop = self._sum(torch.tensor(own, dtype=torch.float64)).tolist()
        return clock, stop > 0

    def wait(self) -> None:
        self.line.wait()

    def close(self) -> None:
        self.line.close()

    def _sum(self, values: Tensor) -> Tensor:
        self.line.sum(values := values.clone())
        return values

    # ---- figures, which anybody may give up

    def added(self, values: Tensor) -> Tensor:
        self._require_all()
        return self._sum(values)

    def gathered(self, value: Value) -> list[Value]:
        self._require_all()
        return self.line.each(value)

    def give_up(self) -> None:
        self._sum(torch.ones(1))

    def finished(self) -> bool:
        return not self._sum(torch.zeros(1)).item()

    def _require_all(self) -> None:
        if not self.finished():
            raise GaveUp

    # ---- a step

    def setup(self, model: nn.Module) -> None:
        with torch.no_grad():
            for tensor in (*model.parameters(), *model.buffers()):
                tensor.copy_(self.line.first(tensor.detach()))

    def own(self, batch: Batch) -> tuple[Batch, bool]:
        rows = span(len(batch.x), self.rank, self.n)
        return (batch.part(rows), True) if rows.stop > rows.start else (batch.first(1), False)

    def evaluated(self, model: Any) -> Any:
        return model

    def backward(self, loss: Tensor) -> None:
        loss.backward()

    def total(self, count: Tensor) -> Tensor:
        return self._sum(count.detach().double()).to(count.dtype)

    def mean(self, value: float) -> float:
        return float(self._sum(torch.tensor(value, dtype=torch.float64)))

    def collect(self, weights: Sequence[Tensor]) -> None:
        """A weight that has a gradient in one process gets one in all."""
        found = self._sum(torch.tensor([float(weight.grad is not None) for weight in weights]))
        moved = [weight for weight, n in zip(weights, found.tolist()) if n]
        for some in _pieces(moved):
            parts = [torch.zeros_like(w) if w.grad is None else w.grad for w in some]
            self.line.sum(flat := torch.cat([part.reshape(-1) for part in parts]))
            for weight, part in zip(some, flat.split([w.numel() for w in some])):
                weight.grad = part.view_as(weight)

    def clip(self, weights: Sequence[Tensor], most: float) -> float:
        return float(nn.utils.clip_grad_norm_(weights, most))

    def part(self, tensor: Tensor) -> Tensor:
        return tensor

    # ---- saving

    def whole(self, tensors: Mapping[str, Tensor], of: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        return dict(tensors)

    def load(self, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
        model.load_state_dict(tensors)

    def divided(self, tensors: Mapping[str, Tensor], of: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return dict(tensors)

    def joined(self, state: State) -> State:
        """Rows stand in the order of ranks."""
        if state is None:
            return None
        found = self.line.each([leaf.cpu() for leaf in states.leaves(state)])
        return states.with_leaves(state, (torch.cat(parts) for parts in zip(*found)))

    def own_state(self, state: State) -> State:
        first = next(states.leaves(state), None)
        if first is None:
            return state
        rows = span(len(first), self.rank, self.n)
        return states.take(state, torch.arange(rows.start, rows.stop, device=first.device))


def _pieces(weights: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Weights in their order, as many together as have PIECE numbers, of one type."""
    some: list[Tensor] = []
    for weight in weights:
        if some and (sum(w.numel() for w in some) + weight.numel() > PIECE or weight.dtype != some[0].dtype):
            yield some
            some = []
        some.append(weight)
    if some:
        yield some
