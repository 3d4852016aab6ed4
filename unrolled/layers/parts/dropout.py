"""Word dropout: whole positions are left out in training, so that no single word decides.

    r_t ~ Bernoulli(1 - p)        X^ = {x_t : r_t = 1}

Iyyer et al. (2015), section 2.3. `kept` says which positions remain, for averages and other poolings; `WordDropout`
puts the zero vector in the place of the others, for layers that run along the sequence.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.core.errors import UsageError


def _probability(p: float) -> float:
    if not 0 <= p < 1:
        raise UsageError(f"invalid value {p} of word dropout: expected a probability >= 0 and < 1")
    return p


def kept(mask: Tensor, p: float) -> Tensor:
    """A mask [B, S] without the positions that are dropped, each with probability p; a row never loses all it has."""
    remaining = mask & (torch.rand(mask.shape, device=mask.device) >= _probability(p))
    return torch.where(remaining.any(dim=1, keepdim=True), remaining, mask)


class WordDropout(nn.Module):
    """x [B, T, D] with the zero vector at dropped positions, in training only; a plain module of each position alone.

    The others are not scaled up: a word that remains keeps its meaning, as beside an unknown word.
    """

    def __init__(self, p: float = 0.3) -> None:
        super().__init__()
        self.p = _probability(p)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        dropped = torch.rand(x.shape[:2], device=x.device) < self.p  # [B, T]
        return x.masked_fill(dropped.unsqueeze(-1), 0)

    def extra_repr(self) -> str:
        return f"p={self.p}"
