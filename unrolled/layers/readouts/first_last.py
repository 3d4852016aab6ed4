"""first-last: [y_1; y_n], for layers that read both ways, which have read all at both ends."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.layers.attention.readout import Readout, at, first_position, last_position


class FirstLast(Readout):
    """[y_1; y_n]: a bidirectional layer has read all, forwards, at the last position and, backwards, at the first."""

    ordered = True

    def __init__(self, d_in: int) -> None:
        super().__init__(d_in, 2 * d_in)

    def pool(self, y: Tensor, mask: Tensor) -> Tensor:
        return torch.cat([at(y, first_position(mask)), at(y, last_position(mask))], dim=-1)  # [B, 2 D]


READOUT = FirstLast
