"""What stands before and behind a body, quick at one tick of one row: a table looked up, an affine map."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unrolled.core.compose import Each
from unrolled.core.state import State
from unrolled.layers import packed
from unrolled.layers.tick import affine, arrays, is_plain, plain


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

    def __init__(self, table: nn.Embedding) -> None:
        super().__init__(table)
        self.scale = table.scale if isinstance(table, QuickTable) else None

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        if x.numel() == 1 and x.is_cpu and not torch.is_grad_enabled() and is_plain(x):
            weight = arrays(self._modules["module"])["weight"]  # type: ignore[arg-type]
            row = weight[int(x.item())].reshape(*x.shape, -1)  # [1, 1, D]
            return torch.from_numpy(row if self.scale is None else row * self.scale), ()
        return self.module(x), ()


class Affine(Each):
    """y = W x + b at every position."""

    module: nn.Linear

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__(linear)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        if x.dim() == 3 and x.numel() == x.size(2) and not torch.is_grad_enabled():
            linear: Any = self._modules["module"]  # self.module would cost a microsecond
            if plain(x, x) and linear._parameters["weight"].dtype == x.dtype:
                return torch.from_numpy(affine(linear, x.numpy()[0, 0])[None, None]), ()  # [1, 1, D']
        return packed.linear(x, self.module.weight, self.module.bias), ()
