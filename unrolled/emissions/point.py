"""Point: numbers that are predicted themselves, without a distribution.

loss = sum_k l(y_k - t_k)        l(e) = e^2 (l2), |e| (l1), or Huber's (1964)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from unrolled.core.emission import Trial
from unrolled.objectives import losses

Distance = Literal["l2", "l1", "huber"]
LOSSES = {"l2": losses.mse, "l1": losses.l1, "huber": losses.huber}


@dataclass(frozen=True)
class Point:
    """`d_out` numbers at each position; the count of a loss is that of numbers."""

    name: ClassVar[str] = "point"

    d_out: int
    distance: Distance = "l2"

    def loss(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return LOSSES[self.distance](_wide(y), target, mask)

    def losses(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """The mean square of the error at each position."""
        errors = (_wide(y) - target).square().mean(-1)  # [B, T]
        return errors if mask is None else errors.where(mask, 0.0)

    def calibrate(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Point:
        return self


def _wide(y: Tensor) -> Tensor:
    """In at least single precision."""
    return y.to(torch.promote_types(y.dtype, torch.float32))


TINY = Trial(Point(2), torch.arange(12.0).view(2, 3, 2), torch.tensor([[True] * 3, [True, False, False]]))
