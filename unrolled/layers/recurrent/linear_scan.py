"""The linear recurrence that DEER solves in each iteration, s_t = J_t s_{t-1} + b_t from s_0 = 0, both ways in time."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.kernels.affine import affine_scan
from unrolled.kernels.diagonal import diagonal


def linear_scan(J: Tensor, b: Tensor) -> Tensor:
    """b [B, T, N], J [B, T, N, N] or its diagonal [B, T, N] -> s_1 .. s_T [B, T, N]."""
    return diagonal(J, b, torch.zeros_like(b[:, 0])) if J.dim() == 3 else affine_scan(J, b)


def reverse_scan(J: Tensor, g: Tensor) -> Tensor:
    """lambda_t = g_t + J_{t+1}^T lambda_{t+1}: the same scan on the transposed maps with time turned around."""
    ahead = torch.cat([torch.zeros_like(J[:, :1]), J[:, 1:].flip(1)], dim=1)
    return linear_scan(ahead if J.dim() == 3 else ahead.mT, g.flip(1)).flip(1)  # [B, T, N]


def rounds(T: int) -> int:
    """How many times a parallel scan waits for the round before."""
    return 2 * max(1, (T - 1).bit_length())
