"""attention: sum_t alpha_t y_t, alpha = softmax over t of v^T tanh(W y_t + b).

Yang et al. (2016); Ilse et al. (2018).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.core.trace import note
from unrolled.layers.attention.readout import Readout


class AttentionPooling(Readout):
    """sum_t alpha_t y_t, alpha = softmax over the real t of v^T tanh(W y_t + b).

    The weights are noted as "attention", [B, 1, 1, S]: one head, one query.
    """

    def __init__(self, d_in: int, d_score: int | None = None) -> None:
        super().__init__(d_in)
        d_score = d_in if d_score is None else d_score
        self.W = nn.Linear(d_in, d_score)
        self.v = nn.Linear(d_score, 1, bias=False)

    def pool(self, y: Tensor, mask: Tensor) -> Tensor:
        s = self.v(torch.tanh(self.W(y))).squeeze(-1)  # [B, S]
        nobody = ~mask.any(dim=1, keepdim=True)  # [B, 1]
        alpha = s.masked_fill(~mask & ~nobody, -torch.inf).softmax(dim=-1).masked_fill(nobody, 0.0)  # [B, S]
        note("attention", alpha[:, None, None])
        u: Tensor = (alpha.unsqueeze(1) @ y).squeeze(1)  # [B, D]
        return u


READOUT = AttentionPooling
