"""mean: the transducer, pooled: 1/n sum_t y_t."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.core.causal import Causal
from unrolled.core.state import State
from unrolled.layers.attention.readout import Readout


class Mean(Readout):
    """1/n sum_t y_t over the real positions.

    >>> Mean(1)(torch.tensor([[[1.0], [5.0], [9.0]]]), torch.tensor([[True, True, False]])).tolist()
    [[3.0]]
    """

    def pool(self, y: Tensor, mask: Tensor) -> Tensor:
        n = mask.sum(dim=1, keepdim=True).clamp_min(1)  # [B, 1]
        return y.sum(dim=1) / n


class RunningMean(Causal):
    """1/t sum_{s<=t} y_s at every t: what `Mean` says of the sequence so far.

    >>> RunningMean()(torch.tensor([[[1.0], [5.0], [9.0]]]))[0].flatten().tolist()
    [1.0, 3.0, 5.0]
    """

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        total, n = (x.new_zeros(x.shape[0], x.shape[2]), x.new_zeros(x.shape[0], 1)) if state is None else state
        t = torch.arange(1, x.shape[1] + 1, device=x.device).to(x)  # [T]
        totals, counts = total[:, None] + x.cumsum(1), n + t  # [B, T, D], [B, T]
        return totals / counts[..., None], (totals[:, -1], counts[:, -1:])


READOUT = Mean
