"""Several processes that train one run: torch's collectives, set up by lightning-fabric (extra `distributed`).

Gradients are added up in one fixed order of weights after the backward pass, in pieces of PIECE numbers. Torch's DDP
sorts them anew after its first step, so that a resumed run would add in another order (docs/decisions/0043).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from unrolled.core import state as states
from unrolled.core.batch import Batch
from unrolled.core.errors import UsageError
from unrolled.core.sharing import span
from unrolled.core.state import State
from unrolled.training.processes import GaveUp, LostProcess, Order

try:
    from lightning_fabric import Fabric
    from lightning_fabric.plugins.environments import LightningEnvironment
    from lightning_fabric.strategies import DDPStrategy
except ImportError:
    raise UsageError(
        "several processes need the package lightning-fabric: pip install 'unrolled[distributed]'"
    ) from None

Value = TypeVar("Value")

PATIENCE = timedelta(hours=6)  # that processes wait for one another: the first prepares data before there are steps
PIECE = 1 << 23  # numbers that are added up at once
LOST = "another process of this run has ended"


class Here(LightningEnvironment):
    """Processes that were started on this machine by the first of them."""

    def __init__(self, rank: int, n: int, port: int) -> None:
        super().__init__()
        self.place, self.size, self.port = rank, n, port

    creates_processes_externally = True
    main_address = "127.0.0.1"

    @property
    def main_port(self) -> int:
        return self.port

    def world_size(self) -> int:
        return self.size

    def global_rank(self) -> int:
        return self.place

    def local_rank(self) -> int:
        return self.place

    def node_rank(self) -> int:
        return 0


@contextmanager
def met() -> Iterator[None]:
    """Work that all processes do together; one that is missing is told in a sentence."""
    try:
        yield
    except RuntimeError as error:
        raise LostProcess(LOST) from error


def connected(here: Here | None = None, device: str = "cpu") -> Fabric:
    """Wait for the other processes; without `here`, those that torchrun has started."""
    for name in ("lightning_fabric", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    local = here.size if here is not None else int(os.environ["LOCAL_WORLD_SIZE"])
    world = here.size if here is not None else int(os.environ["WORLD_SIZE"])
    kind = torch.device(device).type
    fabric = Fabric(
        accelerator=kind,
        devices=local,
        num_nodes=world // local,
        strategy=DDPStrategy(process_group_backend="nccl" if kind == "cuda" else "gloo", timeout=PATIENCE),
        plugins=[] if here is None else [here],
    )
    with _environment_as_before(), met():
        fabric.launch()
    return fabric


class Many:
    """One of several processes."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric, self.others = fabric, self
        self.rank, self.n = fabric.global_rank, fabric.world_size

    # ---- talking

    def added(self, values: Tensor) -> Tensor:
        self._require_all()
        return self._sum(values)

    def gathered(self, value: Value) -> list[Value]:
        self._require_all()
        found: list[Any] = [None] * self.n
        with met():
            torch.distributed.all_gather_object(found, value)
        return found

    def _sum(self, values: Tensor) -> Tensor:
        with met():
            return self.fabric.all_reduce(values.clone(), reduce_op="sum")  # type: ignore[no-any-return]

    def first(self, make: Callable[[], Value]) -> Value:
        value = make() if self.rank == 0 else None
        with met():
            return self.fabric.broadcast(value, src=0)  # type: ignore[return-value]

    def heard(self, now: float, asked: bool) -> tuple[float, bool]:
        own = [now if self.rank == 0 else 0.0, float(asked)]
        clock, stop = self._sum(torch.tensor(own, dtype=torch.float64)).tolist()
        return clock, stop > 0

    def wait(self) -> None:
        with met():
            self.fabric.barrier()

    def close(self) -> None:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()

    # ---- figures, which anybody may give up

    def _require_all(self) -> None:
        if not self.finished():
            raise GaveUp

    def give_up(self) -> None:
        self._sum(torch.ones(1))

    def finished(self) -> bool:
        return not self._sum(torch.zeros(1)).item()

    # ---- a step

    def setup(self, model: nn.Module) -> None:
        with torch.no_grad(), met():
            for tensor in (*model.parameters(), *model.buffers()):
                torch.distributed.broadcast(tensor.data, src=0)

    def own(self, batch: Batch) -> tuple[Batch, bool]:
        rows = span(len(batch.x), self.rank, self.n)
        return (batch.part(rows), True) if rows.stop > rows.start else (batch.first(1), False)

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
            flat = torch.cat([part.reshape(-1) for part in parts])
            with met():
                torch.distributed.all_reduce(flat)
            for weight, part in zip(some, flat.split([w.numel() for w in some])):
                weight.grad = part.view_as(weight)

    def clip(self, weights: Sequence[Tensor], most: float) -> float:
        return float(nn.utils.clip_grad_norm_(weights, most))

    def part(self, tensor: Tensor) -> Tensor:
        return tensor

    # ---- saving

    def whole(self, tensors: Mapping[str, Tensor], of: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        return dict(tensors)

    def divided(self, tensors: Mapping[str, Tensor], of: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return dict(tensors)

    def joined(self, state: State) -> State:
        """Rows stand in the order of ranks."""
        if state is None:
            return None
        found: list[Any] = [None] * self.n
        with met():
            torch.distributed.all_gather_object(found, [*states.leaves(state)])
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


@contextmanager
def _environment_as_before() -> Iterator[None]:
    """What fabric sets in the environment is forgotten again, so that another run may follow."""
    before = {name: os.environ.get(name) for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")}
    yield
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def of_order(order: Order, fabric: Fabric) -> Many:
    """The processes that train what an order says."""
    if not order["config"]["shard"]:
        return Many(fabric)
    from unrolled.training.shards import Sharded

    return Sharded(fabric)
