"""The head of a model that is pre-trained on masked tokens and on which segment follows which.

    logits = E LN(gelu(W h_t + b)) + c        of the token at position t; E is the input's table where that is tied,
                                              and W maps to its width
    next = V tanh(U h_1 + d) + e              of the whole, from the first position, where <class> stands

Devlin et al. (2019), sections 3.1 and A.2; the bias c is one number for each token.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.layers.parts.embedding import Table, TiedHead


class PreTraining(nn.Module):
    """h [B, T, D] -> [B, T, V + n]: the logits of tokens, and behind them the n outputs of the first position, which
    are the same at all."""

    def __init__(self, width: int, n_tokens: int, table: Table | None = None, n_whole: int = 2) -> None:
        super().__init__()
        own = width if table is None else table.embedding_dim
        self.transform, self.norm = nn.Linear(width, own), nn.LayerNorm(own, eps=1e-12)
        self.tokens: nn.Module = nn.Linear(own, n_tokens) if table is None else TiedHead(table, n_tokens)
        self.pooler = nn.Linear(width, width) if n_whole else None
        self.whole = nn.Linear(width, n_whole) if n_whole else None

    def forward(self, h: Tensor) -> Tensor:
        logits: Tensor = self.tokens(self.norm(F.gelu(self.transform(h))))  # [B, T, V]
        if self.pooler is None or self.whole is None or h.shape[1] == 0:
            return F.pad(logits, (0, 0 if self.whole is None else self.whole.out_features))
        told = self.whole(torch.tanh(self.pooler(h[:, :1])))  # [B, 1, n]
        return torch.cat([logits, told.expand(-1, h.shape[1], -1)], dim=-1)
