"""Dictionary: each source token by its most frequent translation; fitted in closed form.

    d(y | s) <- n(y, s) / sum_y n(y, s),   n(y, s) = sum over pairs, y in the target, of d(y | s) / sum_s' d(y | s')
    p(y_t | source) = (1 - e) d(y_t | s_t) + e u(y_t)

The first line is expectation maximisation of the first model of Brown et al. (1993), in which every target token comes
from some source token, each alike; its order is then taken from the source. Of each source token the `kept` likeliest
targets are kept.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from unrolled.core import config
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.tokens import UNKNOWN
from unrolled.layers.counting.lexicon import Pairs, WordByWord, Worded

MOST = 6_000_000  # pairs of a source and a target token that are looked at: bounds memory and time

Whole = NDArray[np.int64]


class Config(config.Config):
    rounds: int = Field(5, ge=1)
    """Number of rounds of expectation maximisation."""
    kept: int = Field(8, ge=1)
    """Number of target tokens kept for each source token."""


def together(data: Pairs) -> tuple[Whole, Whole, Whole]:
    """Every target token with every source token of its pair: (source, target, number of the target); evenly chosen
    pairs where there are too many."""
    S, T = np.diff(data.source_offsets), np.diff(data.target_offsets)
    every = max(1, -(-int((S * T).sum()) // MOST))
    sources, targets, numbers, n = [], [], [], 0
    for i in range(0, len(S), every):
        s = data.source[data.source_offsets[i] : data.source_offsets[i + 1]].astype(np.int64)
        y = data.target[data.target_offsets[i] : data.target_offsets[i + 1]].astype(np.int64)
        sources.append(np.tile(s, len(y)))
        targets.append(np.repeat(y, len(s)))
        numbers.append(np.repeat(np.arange(n, n + len(y)), len(s)))
        n += len(y)
    return np.concatenate(sources), np.concatenate(targets), np.concatenate(numbers)


class Dictionary(WordByWord):
    def __init__(self, config: Config, n_source: int, n_target: int) -> None:
        super().__init__(n_source, n_target, min(config.kept, n_target))
        self.rounds = config.rounds

    def solve(self, data: Pairs) -> None:
        s, y, number = together(data)
        entries, entry = np.unique(s * self.d_out + y, return_inverse=True)
        of = entries // self.d_out  # [n] the source token of each entry
        d = np.ones(len(entries))
        for _ in range(self.rounds):
            d /= np.bincount(of, d, self.n_source)[of]
            share = d[entry]
            share /= np.bincount(number, share)[number]
            d = np.bincount(entry, share, len(entries)).astype(np.float64)
        d /= np.bincount(of, d, self.n_source)[of]
        self.fill(*self._likeliest(entries, of, d), data)

    def _likeliest(self, entries: Whole, of: Whole, d: NDArray[np.float64]) -> tuple[torch.Tensor, torch.Tensor]:
        """The K best entries of each source token, as probabilities that sum to one; unseen ones are <unknown>."""
        K = self.best.shape[1]
        order = np.lexsort((-d, of))
        rank = np.arange(len(order)) - np.searchsorted(of[order], of[order])
        chosen, rank = order[rank < K], rank[rank < K]
        best, p = np.full((self.n_source, K), UNKNOWN, np.int64), np.zeros((self.n_source, K))
        best[of[chosen], rank] = entries[chosen] % self.d_out
        p[of[chosen], rank] = d[chosen]
        p[p.sum(1) == 0, 0] = 1.0
        return torch.from_numpy(best), torch.from_numpy(p / p.sum(1, keepdims=True)).float()


def make(config: Config, sizes: Sizes) -> Worded:
    return Worded(Dictionary(config, sizes.d_source, sizes.d_out))


MODEL = ModelSpec(
    summary="token-by-token translation with the most frequent translation of each source token; fitted in closed form",
    kind="conditional",
    config=Config,
    tiny=Config(rounds=2, kept=2),
    make=make,
    reference="Brown et al. 1993",
    reads=("tokens",),
    reads_source=("tokens",),
    outputs=("next",),
    owns_head=True,
    closed_form=("tokens",),
)
