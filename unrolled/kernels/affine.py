"""The linear recurrence s_t = J_t s_{t-1} + b_t in parallel: an associative scan of affine maps (Blelloch 1990)."""

from __future__ import annotations

import torch
from torch import Tensor


def affine_scan(J: Tensor, b: Tensor) -> Tensor:
    """s_t = J_t s_{t-1} + b_t from s_0 = 0, in 2 log2 T rounds: b [B, T, N], J [B, T, N, N] or its diagonal [B, T, N].

    Neighbours are composed, (J_2, b_2) after (J_1, b_1) = (J_2 J_1, J_2 b_1 + b_2); the half as long sequence of pairs
    is solved likewise and gives every second state; the ones between are one step away.
    """
    T = b.shape[1]
    if T == 1:
        return b
    end = T - T % 2
    J_1, J_2, b_1, b_2 = J[:, 0:end:2], J[:, 1:end:2], b[:, 0:end:2], b[:, 1:end:2]  # [B, T/2, ...]
    seconds = affine_scan(compose(J_2, J_1), apply(J_2, b_1) + b_2)  # [B, T/2, N]
    s = torch.empty_like(b)  # [B, T, N]
    s[:, 0] = b[:, 0]
    s[:, 1::2] = seconds
    s[:, 2::2] = apply(J[:, 2::2], seconds[:, : (T - 1) // 2]) + b[:, 2::2]
    return s


def apply(J: Tensor, v: Tensor) -> Tensor:
    return J * v if J.dim() == v.dim() else (J @ v.unsqueeze(-1)).squeeze(-1)


def compose(J_2: Tensor, J_1: Tensor) -> Tensor:
    return J_2 * J_1 if J_1.dim() == 3 else J_2 @ J_1
