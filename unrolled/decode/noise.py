"""Uniform noise as a function of (seed, the row's own number, tick): nothing is drawn, so nothing has to be in step.

A row samples the same alone or in a batch, and a stream that was stopped continues as if it had not been.

The function is SplitMix64 (Steele, Lea & Flood 2014): the output i of a generator with key k is mix(k + (i + 1) G).
The seed's generator gives each row its key, and the row's generator gives each tick its noise.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

BLOCK = 256  # ticks computed at once, so that a tick costs next to nothing

Words = NDArray[np.uint64]

G = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd


def _mix(z: Words) -> Words:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _output(key: Words, i: Words) -> Words:
    return _mix(key + (i + np.uint64(1)) * G)


def row_keys(seed: int, rows: Words) -> Words:
    """The key of each row's own generator [B]."""
    return _output(_mix(np.array([seed % 2**64], dtype=np.uint64)), rows)


def uniform(seed: int, rows: Words, ticks: Words) -> NDArray[np.float64]:
    """Numbers in [0, 1) for every row and tick: [B, n]. The largest is 1 - 2^-52, so u * x < x for any x > 0."""
    keys = row_keys(seed, rows)  # [B]
    bits = _output(keys[:, None], ticks[None, :])  # [B, n]
    return (bits >> np.uint64(12)).astype(np.float64) * 2.0**-52


class Noise:
    """The noise of one tick for all rows: `noise(tick)` -> [B], or [B, n] where each needs n numbers."""

    def __init__(self, seed: int, rows: Tensor, n: int = 1) -> None:
        self.seed, self.rows, self.n = seed, rows.cpu(), n
        own = (self.rows[:, None] * n + torch.arange(n)).flatten()  # [B * n]
        self._keys = own.numpy().astype(np.uint64)
        self._number, self._block = -1, torch.empty(0)

    def take(self, rows: Tensor) -> Noise:
        """The noise of some of the rows."""
        return Noise(self.seed, self.rows[rows.cpu()], self.n)

    @property
    def keys(self) -> Words:
        """The key of the generator of each number [B * n]."""
        return row_keys(self.seed, self._keys)

    def __call__(self, tick: int) -> Tensor:
        number, place = divmod(tick, BLOCK)
        if number != self._number:
            ticks = np.arange(number * BLOCK, (number + 1) * BLOCK, dtype=np.uint64)
            self._number, self._block = number, torch.from_numpy(uniform(self.seed, self._keys, ticks))
        found = self._block[:, place]  # [B * n]
        return found if self.n == 1 else found.view(-1, self.n)
