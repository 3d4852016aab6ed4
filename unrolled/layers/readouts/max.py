"""max: max_t y_t, each unit by itself."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.layers.attention.readout import Readout


class Max(Readout):
    """The largest value of each unit over the real positions."""

    def pool(self, y: Tensor, mask: Tensor) -> Tensor:
        return y.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(dim=1)


READOUT = Max
