"""The vectors that a model makes of its inputs: of each position, from any of its layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unrolled.core.batch import Batch
from unrolled.core.causal import Conditional
from unrolled.core.errors import UsageError
from unrolled.core.forward import evaluating, forward
from unrolled.core.task import Given, Task
from unrolled.core.trace import Seen, trace
from unrolled.layers.parts.assembled import Decoder, Reader

TOGETHER = 32  # inputs that are read at once
LAST = -1  # the layer whose outputs are read off


class Vectors(NamedTuple):
    """Of one input: vectors [T, D] and the name of each position."""

    values: Tensor
    names: list[str]


def why_none(task: Task, model: Any) -> str | None:
    """Why a model makes no vectors of its inputs; None: it does."""
    ports = task.ports()
    if ports.pooling:
        return "its inputs are bags of sequences"
    if ports.forecast is not None or not isinstance(model, Reader | Decoder | Conditional):
        return "its model makes no vectors of single inputs"
    return None


def vectors_of(task: Task, model: Any, given: Sequence[Given], layer: int) -> Iterator[Vectors]:
    """Those of some inputs, in order."""
    examples = [task.example(_whole(task, model, each.value)) for each in given]
    order = sorted(range(len(examples)), key=lambda i: examples[i][0].x.shape[1])
    found: dict[int, Vectors] = {}
    alone = isinstance(model, Conditional)
    for at in range(0, len(order), 1 if alone else TOGETHER):
        some = order[at : at + (1 if alone else TOGETHER)]
        batch = _joined([examples[i][0] for i in some])
        with evaluating(model) as device, trace() as seen:
            forward(model, batch.to(device))
        y, mask = _layer(seen, layer)
        for row, i in enumerate(some):
            real = y[row, : examples[i][0].x.shape[1]] if mask is None else y[row][mask[row]]
            names = examples[i][1] if len(examples[i][1]) == len(real) else [str(t) for t in range(len(real))]
            found[i] = Vectors(real.float().cpu(), names)
    return (found[i] for i in range(len(examples)))


def _whole(task: Task, model: Any, value: Any) -> Any:
    return task.completed(model, value) if isinstance(model, Conditional) else value


def _joined(batches: Sequence[Batch]) -> Batch:
    """Batches of one row as one, padded on the right."""
    if len(batches) == 1:
        return batches[0]
    width = max(batch.x.shape[1] for batch in batches)
    x = batches[0].x.new_zeros((len(batches), width, *batches[0].x.shape[2:]))
    mask = torch.zeros(len(batches), width, dtype=torch.bool)
    for row, batch in enumerate(batches):
        n = batch.x.shape[1]
        x[row, :n], mask[row, :n] = batch.x[0], True if batch.mask is None else batch.mask[0]
    return Batch(x, None if batches[0].mask is None else mask)


def _layer(seen: Seen, layer: int) -> tuple[Tensor, Tensor | None]:
    """Outputs [B, T, D] of a layer, and where they are real."""
    mask = next(iter(seen["output mask"]), None)
    if layer == LAST:
        return seen["output"][0], mask
    layers = seen["layer"]
    if not 0 <= layer < len(layers):
        known = f"0 (what the first layer reads) to {len(layers) - 1}, or " if layers else ""
        raise UsageError(f"invalid value layer = {layer}: expected {known}{LAST} for the outputs of the whole model")
    return layers[layer], mask
