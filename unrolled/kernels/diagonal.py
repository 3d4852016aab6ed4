"""The diagonal recurrence h_t = a_t h_{t-1} + b_t, elementwise: the core of linear recurrences and of their solvers.

Back: lambda_t = g_t + a_{t+1} lambda_{t+1};  db_t = lambda_t, da_t = lambda_t h_{t-1}, dh_0 = a_1 lambda_1.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unrolled.kernels.affine import affine_scan
from unrolled.kernels.again import gradients_again
from unrolled.kernels.native import call, serving


def diagonal_reference(a: Tensor, b: Tensor, h0: Tensor) -> Tensor:
    """The equation, tick by tick."""
    h, states = h0, []
    for a_t, b_t in zip(a.unbind(1), b.unbind(1), strict=True):
        h = a_t * h + b_t
        states.append(h)
    return torch.stack(states, 1)


def diagonal(a: Tensor, b: Tensor, h0: Tensor) -> Tensor:
    """a, b [B, T, N], h_0 [B, N] -> h_1 .. h_T [B, T, N].

    >>> diagonal(torch.full((1, 3, 1), 0.5), torch.ones(1, 3, 1), torch.zeros(1, 1)).flatten().tolist()
    [1.0, 1.5, 1.75]
    """
    if b.numel() == 0 or serving(a, b, h0) is None:
        return diagonal_torch(a, b, h0)
    states: Tensor = Diagonal.apply(a, b, h0)
    return states


def diagonal_torch(a: Tensor, b: Tensor, h0: Tensor) -> Tensor:
    """In parallel, in 2 log2 T rounds; h_0 enters as a part of b_1."""
    if b.shape[1] == 0:
        return b
    return affine_scan(a, torch.cat([b[:, :1] + (a[:, 0] * h0).unsqueeze(1), b[:, 1:]], dim=1))


class Diagonal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, h0: Tensor) -> Tensor:
        given = a, b, h0
        a, b, h0 = a.contiguous(), b.contiguous(), h0.contiguous()
        h = torch.empty_like(b)
        ctx.library = serving(a, b, h0)
        call(ctx.library, "diagonal_forward", *b.shape, a, b, h0, h)
        ctx.save_for_backward(*given, h)
        return h

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        *given, h = ctx.saved_tensors
        if torch.is_grad_enabled():  # for second derivatives
            return gradients_again(diagonal_reference, given, ctx.needs_input_grad, [g])
        a, h0 = given[0].contiguous(), given[2].contiguous()
        da, db, dh0 = torch.empty_like(a), torch.empty_like(a), torch.empty_like(h0)
        call(ctx.library, "diagonal_backward", *a.shape, a, h0, h, g.contiguous(), da, db, dh0)
        return da, db, dh0
