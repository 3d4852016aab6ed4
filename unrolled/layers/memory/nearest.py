"""The memory that every other one is measured against: the stored pattern that a query is nearest to."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.layers.memory.memory import Memory, blocks


class NearestPattern(Memory):
    """xi <- the stored pattern with the least distance to it, E = half of that distance squared."""

    def update(self, xi: Tensor) -> Tensor:
        return self.patterns[self.nearest(xi)]

    def nearest(self, xi: Tensor) -> Tensor:
        return torch.cat([torch.cdist(some, self.patterns).argmin(1) for some in blocks(xi, len(self.patterns))])

    def energy(self, xi: Tensor) -> Tensor:
        return 0.5 * (xi - self.update(xi)).square().sum(1)
