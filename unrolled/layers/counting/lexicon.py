"""A target written one source token after the other, from a table.

p(y_t | source) = (1 - e) d(y_t | s_t) + e u(y_t)
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.core.causal import Causal, Conditional
from unrolled.core.errors import DataError
from unrolled.core.state import Fixed, State

STOP = 3  # the id of <stop>, as in every codec
ROUNDS = 10  # of estimating e
PIECE = 1 << 18  # targets at a time


class Seen(Protocol):
    """Sources, ids [N] or vectors [N, D], and targets [M] of all examples after each other, with their offsets."""

    @property
    def source(self) -> NDArray[Any]: ...
    @property
    def source_offsets(self) -> NDArray[np.int64]: ...
    @property
    def target(self) -> NDArray[np.int32]: ...
    @property
    def target_offsets(self) -> NDArray[np.int64]: ...


class Pairs(Seen, Protocol):
    """Pairs of ids; `same` [V_s] is the target token that is written like a source one."""

    @property
    def same(self) -> NDArray[np.int64]: ...


class WordByWord(Causal):
    """Reads nothing of what was written; s_t is the t-th token of the source, and after its end d is <stop>.

    d is kept as the K likeliest targets of each source token; u is how often each token is a target.
    """

    receptive_field = 1
    source = "source"

    best: Tensor  # [V_s + 1, K] targets; the last row is the end of the source
    p: Tensor  # [V_s + 1, K]
    u: Tensor  # [V]
    e: Tensor  # []

    def __init__(self, n_source: int, n_target: int, kept: int) -> None:
        super().__init__()
        self.n_source, self.d_out = n_source, n_target
        self.register_buffer("best", torch.from_numpy(np.arange(n_source + 1)[:, None] % n_target).repeat(1, kept))
        self.register_buffer("p", torch.full((n_source + 1, kept), 1 / kept))
        self.register_buffer("u", torch.full((n_target,), 1 / n_target))
        self.register_buffer("e", torch.tensor(0.5))

    def start(self, source: Tensor, mask: Tensor | None = None) -> State:
        """The source [B, S] with its end behind it, and where each row is."""
        if mask is not None:
            source = torch.where(mask, source, self.n_source)
        end = source.new_full((source.shape[0], 1), self.n_source)
        return Fixed(torch.cat([source, end], dim=1)), torch.zeros_like(end[:, 0])  # [B, S + 1], [B]

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        fixed, cursor = self.start(x[:, :0]) if state is None else state
        T = x.shape[1]
        at = (cursor[:, None] + torch.arange(T, device=x.device)).clamp(max=fixed.tree.shape[1] - 1)  # [B, T]
        s = fixed.tree.gather(1, at)  # [B, T]
        y = (self.e * self.u).expand(*s.shape, self.d_out).clone()  # [B, T, V]
        y.scatter_add_(-1, self.best[s], (1 - self.e) * self.p[s])
        return y.log(), (fixed, cursor + T)

    def fill(self, best: Tensor, p: Tensor, data: Pairs) -> None:
        """Take d [V_s, K]; count u, and estimate e from the data: the share of targets that d did not bring about."""
        self.best[:-1, : best.shape[1]], self.p.zero_()[:-1, : p.shape[1]] = best, p
        self.best[-1], self.p[-1, 0] = STOP, 1.0
        s, y = aligned(data, self.n_source)
        counts = 1.0 + torch.bincount(y, minlength=self.d_out).double()
        self.u.copy_(counts / counts.sum())
        pieces = zip(s.split(PIECE), y.split(PIECE))
        d = torch.cat([(self.p[a] * (self.best[a] == b[:, None])).sum(1) for a, b in pieces])  # [n]
        for _ in range(ROUNDS):
            by_chance = self.e * self.u[y]  # [n]
            free = (by_chance / (by_chance + (1 - self.e) * d)).double().sum()
            self.e.copy_((free + 1) / (len(y) + 2))


def aligned(data: Pairs, end: int) -> tuple[Tensor, Tensor]:
    """Every target, <stop> among them, and the source token at the same place, `end` behind the last: [n], [n]."""
    S, T = np.diff(data.source_offsets), np.diff(data.target_offsets) + 1
    y = np.insert(data.target.astype(np.int64), data.target_offsets[1:], STOP)  # [n]
    pair = np.repeat(np.arange(len(T)), T)  # [n] which pair each target is of
    at = np.arange(len(y)) - np.repeat(np.cumsum(T) - T, T)  # [n] its place
    inside = at < S[pair]
    s = np.full(len(y), end, np.int64)
    s[inside] = data.source[(data.source_offsets[:-1][pair] + at)[inside]]
    return torch.from_numpy(s), torch.from_numpy(y)


class Worded(Conditional):
    """The conditional model of such a table."""

    def __init__(self, decoder: WordByWord) -> None:
        super().__init__()
        self.decoder: WordByWord = decoder
        self.d_out = decoder.d_out

    def condition(self, source: Tensor, mask: Tensor | None = None) -> State:
        if source.is_floating_point():
            raise DataError("a table of tokens cannot read a source of numbers")
        return self.decoder.start(source, mask)
