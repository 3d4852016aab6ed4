"""query: multi-head attention (7.25), (7.26) from learned queries u^(1) .. u^(n_queries), side by side.

Lee et al. (2019), pooling by multi-head attention.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.layers.attention.attention import MultiHead, attend
from unrolled.layers.attention.readout import Readout
from unrolled.layers.attention.scores import score_named


class LearnedQuery(Readout):
    """Multi-head attention (7.25), (7.26) of n learned queries to the real positions; their answers side by side."""

    def __init__(self, d_in: int, n_queries: int = 1, n_heads: int | None = None) -> None:
        super().__init__(d_in, n_queries * d_in)
        heads = next(n for n in (4, 2, 1) if d_in % n == 0) if n_heads is None else n_heads
        self.queries = nn.Parameter(torch.randn(n_queries, d_in))
        self.heads = MultiHead(d_in, heads)
        self.score = score_named("scaled-dot", self.heads.d_key, self.heads.d_key)

    def pool(self, y: Tensor, mask: Tensor) -> Tensor:
        q = self.heads.query(self.queries.expand(y.shape[0], -1, -1))  # [B, H, n, m]
        k, v = self.heads.key_value(y)  # [B, H, S, m], [B, H, S, m_v]
        u = attend(self.score, q, k, v, mask[:, None, None])  # [B, H, n, m_v]
        return self.heads.join(u).flatten(1)  # [B, n D]


READOUT = LearnedQuery
