"""Readouts: one vector for a whole sequence, y [B, S, D] and mask [B, S] (True = real) -> [B, D'].

    last        y_n                                   the acceptor: what the layer says at the last real position
    first-last  [y_1; y_n]                            for layers that read both ways, whose last words are at both ends
    mean        1/n sum_t y_t                         the transducer, pooled
    max         max_t y_t                             each unit by itself
    attention   sum_t alpha_t y_t                     alpha = softmax over t of v^T tanh(W y_t + b)
    query       u^(1) .. u^(n_queries), side by side  multi-head attention (7.25), (7.26) from learned queries

Acceptor, max and mean pooling: Poliak (2024), lecture 26. Attention: Yang et al. (2016); Ilse et al. (2018). Learned
queries: Lee et al. (2019), pooling by multi-head attention.

What stands in the padding, NaN included, changes neither a value nor a gradient; a row without a real position gives
zeros.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal
from unrolled.core.compose import without_padding
from unrolled.core.errors import UsageError, nearest
from unrolled.core.state import State
from unrolled.core.trace import note
from unrolled.layers.attention.attention import MultiHead, attend
from unrolled.layers.attention.scores import score_named


class Readout(nn.Module):
    """The base of all readouts; `d_out` is the width of the vector. Subclasses write `pool` for S >= 1, finite y."""

    def __init__(self, d_in: int, d_out: int | None = None) -> None:
        super().__init__()
        self.d_in = d_in
        self.d_out = d_in if d_out is None else d_out

    def forward(self, y: Tensor, mask: Tensor) -> Tensor:
        if y.shape[1] == 0:
            return y.new_zeros(y.shape[0], self.d_out)  # [B, D']
        pooled = self.pool(without_padding(y, mask), mask)  # [B, D']
        return pooled.masked_fill(~mask.any(dim=1, keepdim=True), 0)

    def pool(self, y: Tensor, mask: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define pool(y, mask) -> [B, D']")

    def serial_steps(self, length: int) -> int:
        return 1


def last_position(mask: Tensor) -> Tensor:
    """The index of the last real position of each row, 0 where there is none: [B]."""
    t = torch.arange(mask.shape[1], device=mask.device)  # [S]
    return torch.where(mask, t, 0).amax(dim=1)


def first_position(mask: Tensor) -> Tensor:
    """The index of the first real position of each row, S - 1 where there is none: [B]."""
    t = torch.arange(mask.shape[1], device=mask.device)  # [S]
    return torch.where(mask, t, mask.shape[1] - 1).amin(dim=1)


def at(y: Tensor, index: Tensor) -> Tensor:
    """y [B, S, D] at one position of each row: [B, D]."""
    return y[torch.arange(y.shape[0], device=y.device), index]


class Last(Readout):
    """y_n, n the last real position."""

    def pool(self, y: Tensor, mask: Tensor) -> Tensor:
        return at(y, last_position(mask))


class FirstLast(Readout):
    """[y_1; y_n]: a bidirectional layer has read all, forwards, at the last position and, backwards, at the first."""

    def __init__(self, d_in: int) -> None:
        super().__init__(d_in, 2 * d_in)

    def pool(self, y: Tensor, mask: Tensor) -> Tensor:
        return torch.cat([at(y, first_position(mask)), at(y, last_position(mask))], dim=-1)  # [B, 2 D]


class Mean(Readout):
    """1/n sum_t y_t over the real positions.

    >>> Mean(1)(torch.tensor([[[1.0], [5.0], [9.0]]]), torch.tensor([[True, True, False]])).tolist()
    [[3.0]]
    """

    def pool(self, y: Tensor, mask: Tensor) -> Tensor:
        n = mask.sum(dim=1, keepdim=True).clamp_min(1)  # [B, 1]
        return y.sum(dim=1) / n


class RunningMean(Causal):
    """1/t sum_{s<=t} y_s at every t: what `Mean` says of the sequence so far.

    >>> RunningMean()(torch.tensor([[[1.0], [5.0], [9.0]]]))[0].flatten().tolist()
    [1.0, 3.0, 5.0]
    """

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        total, n = (x.new_zeros(len(x), x.shape[2]), x.new_zeros(len(x), 1)) if state is None else state
        t = torch.arange(1, x.shape[1] + 1, device=x.device).to(x)  # [T]
        totals, counts = total[:, None] + x.cumsum(1), n + t  # [B, T, D], [B, T]
        return totals / counts[..., None], (totals[:, -1], counts[:, -1:])


class Max(Readout):
    """The largest value of each unit over the real positions."""

    def pool(self, y: Tensor, mask: Tensor) -> Tensor:
        return y.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(dim=1)


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


READOUTS: dict[str, Callable[[int], Readout]] = {
    "last": Last, "first-last": FirstLast, "mean": Mean, "max": Max, "attention": AttentionPooling,
    "query": LearnedQuery,
}  # fmt: skip


def readout_named(name: str, d_in: int) -> Readout:
    """A new readout for vectors of this width; its `d_out` is what the head has to read.

    >>> readout_named("first-last", 5).d_out
    10
    """
    if name not in READOUTS:
        raise UsageError(f"there is no readout '{name}'; {nearest(name, READOUTS)}")
    return READOUTS[name](d_in)
