"""Which separate examples stand in the batch of a step: each is in one batch of an epoch.

The order of examples and of batches is a function of (seed, epoch), so a sampler is a pure function of the step number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.core.front import option

POOL = 100  # batches that are sorted by length together: short padding, and still a random order

Whole = NDArray[np.int64]


def random_of(seed: int, epoch: int) -> np.random.Generator:
    return np.random.default_rng((seed, epoch))


def pooled(order: Whole, lengths: Whole, batch_size: int) -> Whole:
    """The order with each pool sorted by length; equal lengths stay in the order given."""
    pool = np.arange(len(order)) // (POOL * batch_size)
    return order[np.lexsort((lengths[order], pool))]


class Epochs:
    """The base of samplers of separate examples: an order of them, cut at the same places in every epoch.

    `order` draws the order of an epoch; the batches, from one of `cuts` to the next, then come in a random order too.
    """

    def __init__(self, cuts: Whole, order: Callable[[np.random.Generator], Whole], seed: int) -> None:
        self.cuts, self.seed = cuts, seed
        self.steps_per_epoch = len(cuts) - 1
        self.notes: list[str] = []
        self._drawn = lru_cache(maxsize=1)(lambda epoch: self._draw(random_of(seed, epoch), order))

    def epoch(self, step: int) -> int:
        return step // self.steps_per_epoch

    def rows(self, step: int) -> Whole:
        """The numbers of the examples of a step."""
        epoch, i = divmod(step, self.steps_per_epoch)
        order, batches = self._drawn(epoch)
        first, last = self.cuts[batches[i] : batches[i] + 2]
        return order[first:last]

    def _draw(self, random: np.random.Generator, order: Callable[[np.random.Generator], Whole]) -> tuple[Whole, Whole]:
        return order(random), random.permutation(self.steps_per_epoch)


class AlikeInLength(Epochs):
    """Batches of so many examples, those of about equal length together.

    In a random order, pools of 100 batches are sorted by length and cut into batches.
    """

    def __init__(self, lengths: Whole, batch_size: int, seed: int) -> None:
        n = len(lengths)
        if n == 0:
            raise DataError(f"this split of the data has no examples; give more data or another {option('split')}")
        self.batch_size = size = min(batch_size, n)
        cuts = np.arange(0, n + size, size).clip(max=n)
        super().__init__(cuts, lambda random: pooled(random.permutation(n), lengths, size), seed)
        if batch_size > n:
            self.notes.append(f"the batch size is {n} instead of {batch_size}: that is all there is")
