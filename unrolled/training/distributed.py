"""Several processes that talk over torch's collectives, set up by lightning-fabric (extra `distributed`)."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments import LightningEnvironment
from lightning_fabric.strategies import DDPStrategy
from torch import Tensor

from unrolled.training.many import Many
from unrolled.training.processes import LostProcess, Order

Value = TypeVar("Value")

PATIENCE = timedelta(hours=6)  # that processes wait for one another: the first prepares data before there are steps
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
    """Work that all processes do together; one that is missing is an error with a sentence."""
    try:
        yield
    except RuntimeError as error:
        raise LostProcess(LOST) from error


class Collectives:
    """Torch's collectives."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric, self.rank, self.n = fabric, fabric.global_rank, fabric.world_size

    def sum(self, values: Tensor) -> None:
        with met():
            torch.distributed.all_reduce(values)

    def each(self, value: Value) -> list[Value]:
        found: list[Any] = [None] * self.n
        with met():
            torch.distributed.all_gather_object(found, value)
        return found

    def first(self, value: Value) -> Value:
        with met():
            return self.fabric.broadcast(value, src=0)

    def wait(self) -> None:
        with met():
            self.fabric.barrier()

    def close(self) -> None:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def connected(here: Here | None = None, device: str = "cpu") -> Collectives:
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
    return Collectives(fabric)


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


def of_order(order: Order, line: Collectives) -> Many:
    """The processes that train what an order says."""
    if not order["config"]["optimiser"]["shard"]:
        return Many(line)
    from unrolled.training.shards import Sharded

    return Sharded(line)
