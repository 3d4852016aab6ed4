"""What stands before and behind a body: tables, and heads that share them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Borrowed(NamedTuple):
    """A module that stands elsewhere in the model: used here, but neither saved nor counted a second time."""

    module: nn.Module

    def __call__(self, x: Tensor) -> Tensor:
        y: Tensor = self.module(x)
        return y


class Table(nn.Embedding):
    """x = s E_w with the scale s; the entries of E begin with N(0, 1/s^2), so that those of x have size 1.

    With s = sqrt(D) (Vaswani et al. 2017, 3.4) one step of an optimiser like Adam moves x sqrt(D) times as far as with
    s = 1. Vectors are taken from one table to another by what they are behind the scale.
    """

    def __init__(self, n_tokens: int, width: int, scale: float = 1.0) -> None:
        super().__init__(n_tokens, width)
        self.scale = scale
        if scale != 1:
            self.weight.detach().div_(scale)

    def forward(self, input: Tensor) -> Tensor:
        x = super().forward(input)
        return x if self.scale == 1 else x * self.scale


class Segmented(Table):
    """x = s E_w + S_k of ids [B, T, 2], a token and its segment (Devlin et al. 2019).

    E begins with N(0, 1/D), so that the logits of a head that is tied to it begin with size 1; S begins small.
    Where an input has one segment, its vector is that of segment 0: `flat` is the table that gives the same.
    """

    def __init__(self, n_tokens: int, width: int, n_segments: int, scale: float = 1.0) -> None:
        super().__init__(n_tokens, width, scale)
        self.weight.detach().mul_(width**-0.5)
        self.segments = nn.Parameter(torch.randn(n_segments, width).mul_(0.02))

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input[..., 0]) + F.embedding(input[..., 1], self.segments)

    def flat(self) -> Tensor:
        """E + S_0 / s, [V, D]."""
        return self.weight.detach() + self.segments.detach()[0] / self.scale


class OneHot(nn.Module):
    """Token k -> the unit vector e_k."""

    unit: Tensor

    def __init__(self, n_tokens: int) -> None:
        super().__init__()
        self.register_buffer("unit", torch.eye(n_tokens), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return F.embedding(tokens, self.unit)  # [B, T, V]


class TiedHead(nn.Module):
    """logits = h E^T + b, where E is the embedding table of the input."""

    def __init__(self, embedding: nn.Embedding, n_tokens: int) -> None:
        super().__init__()
        self.table = Borrowed(embedding)
        self.bias = nn.Parameter(torch.zeros(n_tokens))

    def forward(self, h: Tensor) -> Tensor:
        E: Tensor = self.table.module.weight  # type: ignore[assignment]
        return F.linear(h, E[: len(self.bias)], self.bias)  # [B, T, V]

    def tick_multiply_adds(self, position: int) -> int:
        """As a head with a table of its own."""
        return len(self.bias) * int(self.table.module.embedding_dim)  # type: ignore[arg-type]
