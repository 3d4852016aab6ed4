"""Several encoders that predict together.

    y = mix(y_1 .. y_K),  each with the weight 1/K

What a mixture is depends on what outputs mean, so `mix` is that of the emission (core/emission.py): of classes the mean
of their probabilities, of numbers the mean of the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from unrolled.core.causal import Encoder, serial_depth
from unrolled.core.compose import least
from unrolled.core.emission import average

Mix = Callable[[Tensor, Tensor], Tensor]
"""`mix(ys, weights) -> y` of outputs [K, .., D'] and weights [K]."""


class Together(Encoder):
    """x [B, S, ..] with mask [B, S] -> the mixture of the members' outputs [B, S', D'], and the mask of the first."""

    def __init__(self, members: Sequence[Encoder], mix: Mix = average) -> None:
        super().__init__()
        self.members, self.mix = nn.ModuleList(members), mix
        self.max_length = least(member.max_length for member in members)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        outputs = [member(x, mask) for member in self.members]
        ys = torch.stack([y for y, _ in outputs])  # [K, B, S', D']
        return self.mix(ys, torch.full((len(ys),), 1 / len(ys))), outputs[0][1]

    def serial_steps(self, length: int) -> int:
        """They do not wait for one another."""
        return max(serial_depth(member, length) for member in self.members)
