"""Gaussian: numbers with a normal distribution, each with a mean and a standard deviation of its own.

y = (mu, log sigma),        loss = log sigma + z^2 / 2 + log(2 pi) / 2,   z = (x - mu) / sigma          nats
x = mu + sigma Phi^-1(u)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from unrolled.core.emission import Trial
from unrolled.emissions._numbers import SEEN, Numbers, bounded, moments
from unrolled.objectives import calibration


@dataclass(frozen=True)
class Gaussian(Numbers):
    """The spread is a factor of sigma."""

    name: ClassVar[str] = "gaussian"

    @property
    def d_out(self) -> int:
        return 2 * self.d

    def parameters(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """mu and log sigma, each [.., d]."""
        mu, s = self.blocks(y)
        return mu, bounded(s) + math.log(self.spread)

    def each(self, y: Tensor, target: Tensor) -> Tensor:
        mu, s = self.parameters(y)
        z = (target - mu) * (-s).exp()
        return s + z.square() / 2 + math.log(2 * math.pi) / 2

    def calibrate(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Gaussian:
        """spread^2 = (sum z^2 + 1) / (n + 1): the likeliest, where one number more is thought to lie at z = 1."""
        y, target, real = self._real(y.detach(), target, mask)
        mu, s = replace(self, spread=1.0).parameters(y.double())
        z = ((target - mu) * (-s).exp())[real]  # [n]
        found = math.sqrt((float(z.square().sum()) + 1) / (z.numel() + 1))
        return replace(self, spread=min(max(found, calibration.COLDEST), calibration.HOTTEST))

    def mean(self, y: Tensor) -> Tensor:
        return self.parameters(y)[0]

    def median(self, y: Tensor) -> Tensor:
        return self.parameters(y)[0]

    def quantiles(self, y: Tensor, levels: Sequence[float]) -> Tensor:
        mu, s = self.parameters(y)
        z = torch.special.ndtri(torch.tensor(levels, dtype=torch.float64)).to(mu)  # [Q]
        return mu + s.exp() * z.view(-1, *[1] * mu.dim())

    def cdf(self, y: Tensor, value: Tensor) -> Tensor:
        mu, s = self.parameters(y)
        return torch.special.ndtr((value - mu) * (-s).exp())

    def rescaled(self, y: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
        mu, s = self.blocks(y)
        return torch.cat([shift + scale * mu, bounded(s) + scale.log()], dim=-1)

    def mix(self, ys: Tensor, weights: Tensor) -> Tensor:
        """A normal distribution with the mean and the variance of the mixture."""
        mu, s = self.parameters(ys)
        m, variance = moments(mu, (2 * s).exp(), weights)
        return torch.cat([m, variance.log() / 2 - math.log(self.spread)], dim=-1)

    def draw(self, y: Tensor, noise: Tensor, temperature: float) -> Tensor:
        mu, s = self.parameters(y)
        return mu + temperature * s.exp() * torch.special.ndtri(noise)


TINY = Trial(Gaussian(2), torch.linspace(-2, 3, 12).view(2, 3, 2), SEEN)
