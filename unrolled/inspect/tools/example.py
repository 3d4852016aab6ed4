"""One target of an example: the loss at a single position, in the terms of the task, whatever the task is."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from unrolled.core.batch import Batch
from unrolled.core.errors import UsageError
from unrolled.core.task import Explained, Task


def cut(batch: Batch, begin: int, end: int) -> Batch:
    """The positions from `begin` up to `end` of a batch; an answer for all of them stays."""

    def part(tensor: Tensor) -> Tensor:
        return tensor if tensor.dim() == 1 else tensor[:, begin:end]

    return replace(
        batch,
        x=part(batch.x),
        mask=None if batch.mask is None else part(batch.mask),
        targets={name: part(target) for name, target in batch.targets.items()},
        target_masks={name: part(mask) for name, mask in batch.target_masks.items()},
    )


def exact(batch: Batch) -> Batch:
    """Its numbers in double precision, as a `precise` model takes them."""

    def double(tensor: Tensor) -> Tensor:
        return tensor.double() if tensor.is_floating_point() else tensor

    sources = {name: double(source) for name, source in batch.sources.items()}
    return replace(batch, x=double(batch.x), sources=sources)


def rows_of(batch: Batch, n: int) -> Batch:
    """A batch of one row, n times."""
    return replace(batch.map(lambda tensor: tensor.repeat_interleave(n, dim=0)), rows=None)


def loss_at(task: Task, y: Tensor, batch: Batch, at: int) -> Tensor:
    """The task's loss of position `at` alone, summed over rows: minus the log-probability of what stands there.

    Where a run was trained with label smoothing, that is part of its loss.
    """
    return task.loss(y[:, at : at + 1], cut(batch, at, at + 1))[0]


def has_target(task: Task, y: Tensor, batch: Batch, at: int) -> bool:
    return int(task.loss(y[:, at : at + 1].detach(), cut(batch, at, at + 1))[1]) > 0


def pick_target(task: Task, y: Tensor, batch: Batch, at: int | None) -> int:
    """The position whose target is looked at: the one asked for, or the last that has one."""
    T = batch.y.shape[1]
    with_target = [t for t in range(T) if has_target(task, y, batch, t)]
    if not with_target:
        raise UsageError(f"there are no targets in these {T} positions: give a longer input")
    if at is None:
        return with_target[-1]
    if at not in with_target:
        raise UsageError(f"invalid value at = {at}: this input has targets at positions 0 to {with_target[-1]}")
    return at


class Target(NamedTuple):
    """What is looked at: an output, as a number for each row of outputs."""

    explained: Explained
    at: int | None  # its position; None: it is one answer for all positions
    until: int  # inputs that it can depend on


def target_of(task: Task, y: Tensor, batch: Batch, at: int | None) -> Target:
    """The log-probability of what comes next at a position, or what the task says of its answer there."""
    T, asks = batch.x.shape[1], task.ports().answers
    if asks == "next":
        found = pick_target(task, y, batch, at)

        def log_p(y: Tensor) -> Tensor:
            return torch.stack([-loss_at(task, row, batch, found) for row in y.split(1)])

        return Target(Explained(target_name(task, batch, found), "log p", "nats", log_p), found, found + 1)
    if asks in ("whole", "horizon"):
        if at is not None:
            raise UsageError(f"invalid value at = {at}: there is one prediction for the whole input")
        return Target(task.explained(y, 0), None, T)
    if at is not None and at >= T:
        raise UsageError(f"invalid value at = {at}: this input has positions 0 to {T - 1}")
    return Target(task.explained(y, T - 1 if at is None else at), T - 1 if at is None else at, T)


def labels(names: list[str]) -> list[str]:
    """Positions with their names, where these are not just numbers.

    >>> labels(["a", "1"])
    ['0 a', '1']
    """
    return [name if name == str(t) else f"{t} {name}" for t, name in enumerate(names)]


def target_name(task: Task, batch: Batch, at: int) -> str:
    """The target of a position for the eye: the token, or for vectors the number of the position."""
    known = task.vocabularies().get("head")
    if known is None or batch.y.is_floating_point():
        return f"frame {at}"
    return str(known.codec.name(int(batch.y[0, at])))
