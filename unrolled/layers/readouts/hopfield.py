"""hopfield: a learned state pattern retrieves from the positions as from stored patterns, by several updates.

    K = Y W_K,   xi <- softmax(beta xi K^T) K,   z = softmax(beta xi K^T) K W_V                            (7.8)-(7.11)

Ramsauer et al. (2020); in bags of immune receptors Widrich et al. (2020). With beta learned and large, one position
among very many decides.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.layers.attention.readout import Readout
from unrolled.layers.memory.association import LEARNED, Hopfield


class HopfieldPooling(Readout):
    """The learned state is compared with all real positions; its weights are noted as "attention", [B, 1, 1, S]."""

    def __init__(self, d_in: int, updates: int = 2) -> None:
        super().__init__(d_in)
        self.xi = nn.Parameter(torch.randn(1, 1, d_in))
        self.memory = Hopfield(d_in, d_in, d_in, d_in, updates, LEARNED)

    def pool(self, y: Tensor, mask: Tensor) -> Tensor:
        z: Tensor = self.memory(self.xi.expand(y.shape[0], -1, -1), y, mask)  # [B, 1, D]
        return z[:, 0]


READOUT = HopfieldPooling
