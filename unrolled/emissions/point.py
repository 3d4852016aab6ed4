"""Point: numbers that are predicted themselves, without a distribution.

loss = sum_k l(y_k - t_k)        l(e) = e^2 (l2), |e| (l1), or Huber's (1964)

Squares are least at the mean, absolute values at the median, so y stands for the one or the other, or between them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from unrolled.core.emission import Trial, average
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
        """The mean square of the error at each position, over the numbers that are observed."""
        errors = (_wide(y) - target).square()  # [B, T, D]
        if mask is None:
            return errors.mean(-1)
        if mask.dim() < errors.dim():
            return errors.mean(-1).where(mask, 0.0)
        return errors.where(mask, 0.0).sum(-1) / mask.sum(-1).clamp_min(1)

    def calibrate(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Point:
        return self

    def mix(self, ys: Tensor, weights: Tensor) -> Tensor:
        return average(ys, weights)

    def to_json(self) -> str:
        return json.dumps({"name": self.name, "d_out": self.d_out, "distance": self.distance})

    @property
    def d(self) -> int:
        return self.d_out

    def mean(self, y: Tensor) -> Tensor:
        return y

    def median(self, y: Tensor) -> Tensor:
        return y

    def rescaled(self, y: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
        return shift + scale * y


def _wide(y: Tensor) -> Tensor:
    """In at least single precision."""
    return y.to(torch.promote_types(y.dtype, torch.float32))


TINY = Trial(Point(2), torch.arange(12.0).view(2, 3, 2), torch.tensor([[True] * 3, [True, False, False]]))
