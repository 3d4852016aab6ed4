"""Distributions of d numbers at each position: what their emissions share.

    y [.., k d]      k blocks of d, one for each parameter; the first is the location
    target [.., d]   mask [..] or [.., d] is False where a number is missing; without a mask NaN is missing

    loss   = (sum of the losses of all observed numbers, how many there are)
    losses = the sum over the observed numbers of a position

The numbers of a position are independent given y. `spread`, 1 until it is fitted to held-out targets, widens or narrows
the distribution in everything but `loss`, which is for training.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from unrolled.core.emission import Chooser, average
from unrolled.core.finite import not_finite
from unrolled.decode.config import Decoding
from unrolled.objectives import calibration

LARGEST = 40.0  # of a logarithm in either direction: e^40 = 2e17, whose square is finite in single precision
HALF = 2.0**-53  # half the distance of uniform numbers, so that none of them is 0
SEEN = torch.tensor([[[True, True], [True, False], [True, True]], [[False, True], [False, False], [False, False]]])
"""Which numbers of small trials are observed [2, 3, 2]."""


@dataclass(frozen=True)
class Numbers(ABC):
    """`d` numbers at each position, of which each has a distribution."""

    name: ClassVar[str]
    options: ClassVar[type[Decoding]] = Decoding
    n_choices: ClassVar[None] = None

    d: int
    spread: float = 1.0

    @property
    @abstractmethod
    def d_out(self) -> int: ...

    @property
    def n_noise(self) -> int:
        return self.d

    # ---- losses

    @abstractmethod
    def each(self, y: Tensor, target: Tensor) -> Tensor:
        """The loss of every number [.., d], as metrics and scores report it."""

    def trained(self, y: Tensor, target: Tensor) -> Tensor:
        """The loss of every number [.., d], as training makes it small."""
        return replace(self, spread=1.0).each(y, target)

    def loss(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        y, target, real = self._real(y, target, mask)
        return self.trained(y, target).masked_fill(~real, 0.0).sum(), real.sum()

    def losses(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        y, target, real = self._real(y, target, mask)
        return self.each(y, target).masked_fill(~real, 0.0).sum(-1)

    def _real(self, y: Tensor, target: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """y and target with 0 for numbers that are missing, before any logarithm; and which are not [.., d]."""
        real = ~target.isnan() if mask is None else mask
        if real.dim() < target.dim():
            real = real.unsqueeze(-1).expand_as(target)
        y = y.to(torch.promote_types(y.dtype, torch.float32))
        gone = ~torch.cat([real] * (self.d_out // self.d), dim=-1)  # [.., k d]
        return y.masked_fill(gone, 0.0), target.to(y).masked_fill(~real, 0.0), real

    def calibrate(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Self:
        """The same, its spread fitted to held-out targets."""
        y, target, real = self._real(y.detach(), target, mask)
        y, target, weight = y.double(), target.double(), self.unit(y, target, real)

        def total(spread: float) -> float:
            return float(replace(self, spread=spread).each(y, target)[real].sum())

        return replace(self, spread=calibration.fit_spread(total, weight) if bool(real.any()) else 1.0)

    def unit(self, y: Tensor, target: Tensor, real: Tensor) -> float:
        """What one number more weighs against the loss: 1 nat, where the loss is in nats."""
        return 1.0

    # ---- numbers

    @abstractmethod
    def mean(self, y: Tensor) -> Tensor: ...

    @abstractmethod
    def quantiles(self, y: Tensor, levels: Sequence[float]) -> Tensor: ...

    def median(self, y: Tensor) -> Tensor:
        return self.quantiles(y, [0.5])[0]

    # ---- draws

    @abstractmethod
    def draw(self, y: Tensor, noise: Tensor, temperature: float) -> Tensor:
        """Numbers [B, d] of outputs y [B, d_out] and uniform noise [B, n_noise] between 0 and 1, both excluded."""

    def chooser(self, options: Decoding) -> Chooser:
        def choose(y: Tensor, history: Tensor, noise: Tensor) -> Tensor:
            if not bool((finite := y.isfinite()).all()):
                raise not_finite(y[~finite][0].item(), f"step {history.shape[1] + 1}")
            u = noise.view(len(y), self.n_noise).to(y.device, torch.float64) + HALF
            return self.draw(y.double(), u, options.temperature).to(history.dtype)

        return choose

    def log_prob(self, y: Tensor, choice: Tensor) -> Tensor:
        return -self.each(y.double(), choice.double()).sum(-1)

    def to_json(self) -> str:
        return json.dumps({"name": self.name, "d_out": self.d_out, **asdict(self)})

    def blocks(self, y: Tensor) -> Sequence[Tensor]:
        """The parameters, each [.., d]."""
        return y.unflatten(-1, (-1, self.d)).unbind(-2)


def bounded(log: Tensor) -> Tensor:
    """A logarithm whose exponential, and its square, is finite."""
    return log.clamp(-LARGEST, LARGEST)


def moments(mean: Tensor, variance: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of a mixture of K distributions, of which they are [K, ..]; weights [K].

    m = sum_k w_k m_k        v = sum_k w_k (v_k + (m_k - m)^2)
    """
    m = average(mean, weights)
    return m, average(variance + (mean - m).square(), weights)
