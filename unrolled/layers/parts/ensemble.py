"""Several encoders that answer together.

    y = 1/K sum_k y_k

Of numbers this is their mean, of log p (but for a constant) the geometric mean of probabilities: the softmax of y is
prod_k p_k^(1/K), brought to sum 1. One rule so serves classes, sets of classes, numbers, tags and series.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unrolled.core.causal import Encoder, serial_depth
from unrolled.core.compose import least


class Together(Encoder):
    """x [B, S, ..] with mask [B, S] -> the mean of what all members say [B, S', D'], and the mask of the first."""

    def __init__(self, members: Sequence[Encoder]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.max_length = least(member.max_length for member in members)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        said = [member(x, mask) for member in self.members]
        return torch.stack([y for y, _ in said]).mean(0), said[0][1]

    def serial_steps(self, length: int) -> int:
        """They do not wait for one another."""
        return max(serial_depth(member, length) for member in self.members)
