"""Weights of an ensemble that depend on how sure its members are (layers/parts/gate.py), fitted on validation data.

    L(A, b) = -1/N sum_n log sum_k w_k(n) p_k(target n)  +  RIDGE |A|^2,   from A = 0, b = 0: the weights as they are

A quarter of the positions, in blocks, is kept aside: only if the loss is smaller there too, by GAIN, are all of them
used, so that few positions do not make weights that hold nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unrolled.core.emission import Finite
from unrolled.core.task import Task
from unrolled.layers.parts.ensemble import together
from unrolled.layers.parts.gate import Gate, certainty
from unrolled.runs import build

RIDGE = 1e-3
FEWEST = 2000  # positions
BLOCK, ASIDE = 250, 4  # neighbouring positions, and one of so many blocks is kept aside
GAIN = 1e-3  # of the loss with constant weights
ROUNDS = 100  # of the optimiser


class Seen(NamedTuple):
    """What members said at N positions that have a target."""

    nats: Tensor  # [K, N]
    c: Tensor  # [N, 2 K]

    def at(self, places: Tensor) -> Seen:
        return Seen(self.nats[:, places], self.c[places])


def read(models: Sequence[Any], task: Task, limit: int) -> Seen | None:
    """What these models say on a part of the validation data; None: they are not read position by position."""
    emission, outputs = task.emission, list[Tensor]()
    if not isinstance(emission, Finite):
        return None

    def keep(ys: Tensor, _: Tensor) -> Tensor:
        outputs.append(ys)
        return ys[0]

    nats, sure = [], []
    for batch, y in task.heard(together(models, keep), "valid", limit):
        if len(outputs) != 1 or y.shape[1] != batch.y.shape[1]:
            return None
        ys = outputs.pop()  # [K, B, T, V]
        nats.append(torch.stack([emission.losses(one, batch.y, batch.y_mask)[batch.real] for one in ys]))  # [K, n]
        sure.append(certainty(emission.log_probabilities(ys))[batch.real])  # [n, 2 K]
    return Seen(torch.cat(nats, 1).double(), torch.cat(sure).double()) if nats else None


def fitted(models: Sequence[Any], weights: Sequence[float], task: Task, limit: int) -> Gate | None:
    """Weights that are better on a part of the validation data than these constant ones; None: none are."""
    seen = read(models, task, limit)
    if seen is None or seen.nats.shape[1] < FEWEST:
        return None
    base = torch.tensor(weights, dtype=torch.double)
    places = torch.arange(seen.nats.shape[1])
    aside = places // BLOCK % ASIDE == ASIDE - 1
    trial = _fit(build.gate(task, len(models)), seen.at(places[~aside]), base)
    constant = -torch.logsumexp(base.log()[:, None] - seen.nats[:, aside], dim=0).mean()
    with torch.no_grad():
        if _nats(trial, seen.at(places[aside]), base) > constant - GAIN * constant.abs():
            return None
    return _fit(build.gate(task, len(models)), seen, base).float()


def _nats(gate: Gate, seen: Seen, base: Tensor) -> Tensor:
    """The mean loss of the mixture."""
    return -torch.logsumexp(gate.log_weights(seen.c, base).T - seen.nats, dim=0).mean()


def _fit(gate: Gate, seen: Seen, base: Tensor) -> Gate:
    """The gate with the weights that make L least, by L-BFGS."""
    from scipy.optimize import minimize

    gate = gate.double()
    gate.mean.copy_(seen.c.mean(0))
    gate.deviation.copy_(seen.c.std(0).clamp(min=1e-6))
    shapes = [gate.A.shape, gate.b.shape]

    def put(flat: np.ndarray[Any, Any]) -> None:
        parts = torch.from_numpy(flat).split([shape.numel() for shape in shapes])
        with torch.no_grad():
            for parameter, part, shape in zip((gate.A, gate.b), parts, shapes, strict=True):
                parameter.copy_(part.view(shape))

    def value(flat: np.ndarray[Any, Any]) -> tuple[float, np.ndarray[Any, Any]]:
        put(flat)
        loss = _nats(gate, seen, base) + RIDGE * gate.A.square().sum()
        found = torch.autograd.grad(loss, (gate.A, gate.b))
        return float(loss.detach()), torch.cat([each.flatten() for each in found]).numpy()

    start = np.zeros(sum(shape.numel() for shape in shapes))
    put(minimize(value, start, jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS}).x)
    return gate
