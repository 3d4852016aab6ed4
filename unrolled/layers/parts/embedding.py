"""What stands before and behind a body, quick at one tick of one row: a table looked up, an affine map."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unrolled.core.compose import Each
from unrolled.core.state import State
from unrolled.layers.attention import packed
from unrolled.layers.recurrent.tick import affine, arrays, bare, is_plain, plain


class QuickTable(nn.Embedding):
    """x = sqrt(D) E_w with entries of E from N(0, 1/D): vectors of size 1 in each entry (Vaswani et al. 2017, 3.4).

    So one step of an optimiser like Adam moves them sqrt(D) times as far as it would move entries of that size.
    """

    def __init__(self, n_tokens: int, width: int) -> None:
        super().__init__(n_tokens, width)
        self.scale = width**0.5
        self.weight.detach().div_(self.scale)

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) * self.scale


class Lookup(Each):
    """Tokens [B, T] -> rows of a table [B, T, D]."""

    module: nn.Embedding

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        table: Any = self._modules["module"]  # self.module would cost a microsecond
        if x.numel() == 1 and x.is_cpu and not torch.is_grad_enabled() and is_plain(x) and table.max_norm is None:
            quick = type(table) is QuickTable
            weights, token = arrays(table, QuickTable if quick else nn.Embedding, None, "weight"), int(x.item())
            if weights is not None and 0 <= token < len(weights["weight"]):
                row = weights["weight"][token]
                row = row * table.scale if quick else row.copy()  # [D] in memory of its own
                return torch.from_numpy(row.reshape(*x.shape, -1)), ()  # [1, 1, D]
        return table(x), ()


class Affine(Each):
    """y = W x + b at every position."""

    module: nn.Linear

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        if x.dim() == 3 and x.numel() == x.size(2) and not torch.is_grad_enabled():
            linear: Any = self._modules["module"]  # self.module would cost a microsecond
            weights = arrays(linear, nn.Linear, x.dtype, "weight") if plain(x, x) else None
            if weights is not None:
                return torch.from_numpy(affine(weights, x.numpy()[0, 0])[None, None]), ()  # [1, 1, D']
        if not bare(self.module, nn.Linear, "weight"):
            return self.module(x), ()
        return packed.linear(x, self.module.weight, self.module.bias), ()
