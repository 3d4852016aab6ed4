"""A memory as a layer: every vector is a query, and what comes out is what is read where it stands still."""

from __future__ import annotations

import torch
from torch import Tensor

from unrolled.core.causal import Encoder
from unrolled.core.compose import without_padding
from unrolled.layers.memory.memory import Memory, Recalled

MOST = 100  # updates


class Recaller(Encoder):
    """x [B, S, D] with mask [B, S] -> [B, S, D'], each vector by itself; an empty memory gives zeros."""

    def __init__(self, body: Memory) -> None:
        super().__init__()
        self.body = body
        self.d_in = body.d
        self.d_out = body.d

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        x = without_padding(x, mask)
        y = x.new_zeros(*x.shape[:2], self.body.values.shape[1] or self.body.d)
        if len(self.body.patterns) and bool(mask.any()):
            y[mask] = self.body.read(self.found(x[mask]).state).to(y)
        return y, mask

    def found(self, xi: Tensor, path: bool = False) -> Recalled:
        """Where queries [n, D] end."""
        return self.body.recall(xi, MOST, path)

    def solve(self, patterns: Tensor, values: Tensor | None = None) -> dict[str, float]:
        """Store patterns [N, D]; what was chosen by them."""
        self.body.store(patterns, values)
        return self.body.chosen()

    def serial_steps(self, length: int) -> int:
        return MOST


def damaged(x: Tensor, kind: str, amount: float, random: torch.Generator) -> Tensor:
    """Patterns [n, D] with a share of their numbers damaged; which ones is drawn anew for each pattern.

    flip: turned to the opposite; mask: 0, or -1 where numbers are -1 and +1; cover: the same for the last ones, such
    as the lower part of an image; noise: normal with `amount` times the standard deviation of the pattern, rounded to
    -1 and +1 where these are all that there is.
    """
    n, d = x.shape
    k = round(amount * d) if kind != "noise" else 0
    spins = bool((x.abs() == 1).all())
    ground = -1.0 if spins else 0.0
    if kind == "noise":
        noisy = x + amount * x.std(1, keepdim=True) * torch.randn(n, d, generator=random)
        return torch.where(noisy >= 0, 1.0, -1.0) if spins else noisy
    if kind == "cover":
        covered = x.clone()
        covered[:, d - k :] = ground
        return covered
    chosen = torch.rand(n, d, generator=random).argsort(1) < k  # [n, D], k in each row
    return torch.where(chosen, -x if kind == "flip" else torch.full_like(x, ground), x)
