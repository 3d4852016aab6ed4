"""Which inputs an output depends on, and how strongly: by gradients, or where there are none by changing the input.

    s_{t,s} = |d y_t / d x_s|_F                            by gradient, x_s the vector behind the input layer
    s_{t,s} = max over changes of x_s of max_k |y_{t,k}' - y_{t,k}|          by change

Rows of a batch are independent (law 3), so one backward pass over n equal rows gives n directions of the Jacobian. A
full set of orthonormal directions gives the Frobenius norm exactly, some of them, scaled, an estimate that is without
bias; what does not depend at all is exactly zero in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from unrolled.core import state as tree
from unrolled.core.batch import Batch
from unrolled.core.forward import forward
from unrolled.core.task import Model
from unrolled.inspect.tools.example import cut, exact, rows_of
from unrolled.inspect.tools.opened import Opened, flows, open_model, precise, why_closed

POSITIONS = 1 << 14  # of all rows together that are computed at once
NUMBERS = 1 << 24  # of all their outputs together
ROUNDING = 1e-9  # relative: a change below it is the noise of sums in another order
TRIES = 4  # other values that an input is changed to


class Dependence(NamedTuple):
    """How strongly some outputs depend on each input."""

    strength: Tensor  # [O, T], row i for the output at `outputs[i]`
    by: str  # gradient or change
    directions: str  # how much of the Jacobian was looked at


def dependence(model: Model, batch: Batch, outputs: Sequence[int], directions: int = 8, seed: int = 0) -> Dependence:
    """Measured in double precision on one example; `outputs` are positions."""
    model = precise(model)
    if why_closed(model, batch.x.is_floating_point()) is None:
        opened = open_model(model, batch)
        if flows(opened):
            width = opened.body(opened.vectors[:, :1], opened.state)[0].shape[-1]
            strength = by_gradient(opened, outputs, directions, seed)
            return Dependence(strength, "gradient", f"{min(directions, width)} of {width} directions")
    return Dependence(by_change(model, batch, outputs, seed), "change", f"{TRIES} changes")


def rows_at_once(length: int, width: int) -> int:
    """How many rows of so many positions, with outputs so wide, are computed together."""
    return max(1, min(POSITIONS // length, NUMBERS // (length * width)))


def norm(x: Tensor, dim: int) -> Tensor:
    """|x| along an axis, also where the squares of its numbers would be too small or too large to be held."""
    most = x.abs().amax(dim, keepdim=True)
    return (x / most.clamp(min=torch.finfo(x.dtype).tiny)).square().sum(dim).sqrt() * most.squeeze(dim)


def orthonormal(n: int, width: int, seed: int) -> Tensor:
    """n directions [n, width] with E |V J|^2 = |J|_F^2, exactly so for n = width."""
    noise = torch.randn(width, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.linalg.qr(noise)[0].T * (width / n) ** 0.5


def by_gradient(opened: Opened, outputs: Sequence[int], directions: int, seed: int = 0) -> Tensor:
    """|d y_t / d x_s|_F for t in `outputs` and all s: [O, T]; exact for as many directions as y is wide, or more."""
    vectors, body, state = opened
    T = vectors.shape[1]
    width = body(vectors[:, :1].detach(), state)[0].shape[-1]
    n = min(directions, width)
    V = orthonormal(n, width, seed).to(vectors).repeat(len(outputs), 1)  # [O n, D']
    at = torch.tensor(outputs).repeat_interleave(n)  # [O n]
    norms = []
    for some in torch.arange(len(at)).split(rows_at_once(T, width)):
        x = vectors.detach().repeat_interleave(len(some), dim=0).requires_grad_()  # [R, T, D]
        y = body(x, None if state is None else tree.repeat(state, len(some)))[0]  # [R, T, D']
        y_t = y[torch.arange(len(some)), at[some]]  # [R, D']
        (gradient,) = torch.autograd.grad((y_t * V[some]).sum(), x)
        norms.append(norm(gradient, -1))  # [R, T]
    return norm(torch.cat(norms).view(len(outputs), n, T), 1)


@torch.no_grad()
def by_change(model: Model, batch: Batch, outputs: Sequence[int], seed: int = 0) -> Tensor:
    """The largest change of y_t when x_s alone becomes something else, for t in `outputs` and all s: [O, T]."""
    T, some = batch.x.shape[1], torch.tensor(outputs)
    strength = torch.zeros(len(some), T, dtype=torch.float64)
    noise = torch.Generator().manual_seed(seed)
    batch = exact(batch)
    width = forward(model, cut(batch, 0, 1))[0].shape[-1]
    for attempt in range(TRIES):
        other = _other(batch.x[0], attempt, noise)  # [T] or [T, D]
        for s in torch.arange(T).split(rows_at_once(T, width)):
            rows = rows_of(batch, len(s) + 1)  # the last row stays as it is
            rows.x[torch.arange(len(s)), s] = other[s]
            y = forward(model, rows)[0][:, some]  # [S + 1, O, D']
            change = (y[:-1] - y[-1:]).abs().amax(-1).double()  # [S, O]
            change[change <= ROUNDING * y.abs().amax()] = 0
            strength[:, s] = torch.maximum(strength[:, s], change.T)
    return strength


def _other(x: Tensor, attempt: int, noise: torch.Generator) -> Tensor:
    """Something else for each position: for tokens one that occurs in the example, for vectors a random step away."""
    if x.is_floating_point():
        return x + 10.0**-attempt * torch.randn(x.shape, generator=noise).to(x)
    kinds, here = x.unique(dim=0, return_inverse=True)  # ids side by side are changed together
    if len(kinds) == 1:  # nothing else occurs: any other token that the model must know
        return (x - 1).clamp(min=0) if int(x.max()) else x + 1
    step = torch.randint(1, len(kinds), here.shape, generator=noise)
    return kinds[(here + step) % len(kinds)]
