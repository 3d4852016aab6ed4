"""Normalisations of a transformer block, each at every position alone.

layer       gamma * (z - mean) / sqrt(var + eps) + beta,  var with 1/p        torch.nn.LayerNorm, Ba et al. (2016)
deviation   gamma * (z - mean) / (s + eps) + beta,  s the sample deviation    (6.6) of the lecture notes
rms         gamma * z / sqrt(mean of z^2 + eps)                               Zhang & Sennrich (2019), Llama
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

Norm = Literal["layer", "rms", "deviation"]


class DeviationNorm(nn.Module):
    """gamma * (z - mean) / (s + eps) + beta with s^2 = sum (z - mean)^2 / (p - 1); of one number s is 0."""

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.d_in, self.eps = width, eps

    def forward(self, z: Tensor) -> Tensor:
        d = z - z.mean(-1, keepdim=True)
        v = d.square().sum(-1, keepdim=True) / max(self.d_in - 1, 1)
        s = torch.where(v > 0, v, 1.0).sqrt().where(v > 0, 0.0)  # the root of 0 has no slope
        return self.weight * d / (s + self.eps) + self.bias


class RMSNorm(nn.Module):
    """gamma * z / sqrt(mean of z^2 + eps).

    >>> RMSNorm(2, eps=0.0)(torch.tensor([3.0, 4.0])).square().mean().item()
    1.0
    """

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.d_in, self.eps = width, eps

    def forward(self, z: Tensor) -> Tensor:
        return self.weight * (z * torch.rsqrt(z.square().mean(-1, keepdim=True) + self.eps))


NORMS: dict[str, Callable[[int, float], nn.Module]] = {
    "layer": nn.LayerNorm, "rms": RMSNorm, "deviation": DeviationNorm,
}  # fmt: skip
