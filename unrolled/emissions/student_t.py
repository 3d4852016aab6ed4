"""Student-t: numbers with heavier tails than normal ones, so that an outlier moves the others less.

    y = (mu, log sigma, a),     nu = 2 + e^a,   z = (x - mu) / sigma
    loss = log sigma + log B(nu / 2, 1 / 2) + log(nu) / 2 + (nu + 1) / 2 log(1 + z^2 / nu)                  nats
    x = mu + sigma sqrt(nu (u^(-2 / nu) - 1)) cos(2 pi v)                              Bailey (1994), polar

B(p, q) is the beta function. nu > 2, so that the variance sigma^2 nu / (nu - 2) exists. It is an exponential of a, not
a softplus, so that training reaches the nearly normal nu = 30 from nu = 3 in a few units of a.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unrolled.core.emission import Trial, average
from unrolled.emissions._numbers import SEEN, Numbers, bounded, moments

LEAST, MOST = -4.0, 6.0  # of a: nu from 2.02 to 405


@dataclass(frozen=True)
class StudentT(Numbers):
    """The spread is a factor of sigma."""

    name: ClassVar[str] = "student-t"

    @property
    def d_out(self) -> int:
        return 3 * self.d

    @property
    def n_noise(self) -> int:
        return 2 * self.d

    def parameters(self, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """mu, log sigma and nu, each [.., d]."""
        mu, s, a = self.blocks(y)
        return mu, bounded(s) + math.log(self.spread), 2 + a.clamp(LEAST, MOST).exp()

    def each(self, y: Tensor, target: Tensor) -> Tensor:
        mu, s, nu = self.parameters(y)
        z = (target - mu) * (-s).exp()
        log_beta = _log_beta(nu.double()).to(nu)  # a difference of large numbers
        return s + log_beta + nu.log() / 2 + (nu + 1) / 2 * (z.square() / nu).log1p()

    def mean(self, y: Tensor) -> Tensor:
        return self.parameters(y)[0]

    def median(self, y: Tensor) -> Tensor:
        return self.parameters(y)[0]

    def quantiles(self, y: Tensor, levels: Sequence[float]) -> Tensor:
        from scipy.special import stdtrit

        mu, s, nu = self.parameters(y.detach())
        z = torch.stack([torch.as_tensor(stdtrit(nu.double().cpu().numpy(), level)) for level in levels])
        return mu + s.exp() * z.to(mu)

    def cdf(self, y: Tensor, value: Tensor) -> Tensor:
        from scipy.special import stdtr

        mu, s, nu = self.parameters(y.detach())
        z = ((value - mu) * (-s).exp()).double().cpu().numpy()
        return torch.as_tensor(stdtr(nu.double().cpu().numpy(), z)).to(mu)

    def rescaled(self, y: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
        mu, s, a = self.blocks(y)
        return torch.cat([shift + scale * mu, bounded(s) + scale.log(), a], dim=-1)

    def mix(self, ys: Tensor, weights: Tensor) -> Tensor:
        """A t-distribution with the mean and the variance of the mixture, and the mean of nu."""
        mu, s, nu = self.parameters(ys)
        m, variance = moments(mu, (2 * s).exp() * nu / (nu - 2), weights)
        nu = average(nu, weights)
        s = (variance * (nu - 2) / nu).log() / 2 - math.log(self.spread)
        return torch.cat([m, s, (nu - 2).log()], dim=-1)

    def draw(self, y: Tensor, noise: Tensor, temperature: float) -> Tensor:
        mu, s, nu = self.parameters(y)
        u, v = noise.unflatten(-1, (2, self.d)).unbind(-2)
        t = (nu * torch.expm1(-2 / nu * u.log())).sqrt() * torch.cos(2 * math.pi * v)
        return mu + temperature * s.exp() * t


def _log_beta(nu: Tensor) -> Tensor:
    """log B(nu / 2, 1 / 2)."""
    return torch.lgamma(nu / 2) + math.log(math.pi) / 2 - torch.lgamma((nu + 1) / 2)


TINY = Trial(StudentT(2), torch.linspace(-2, 3, 12).view(2, 3, 2), SEEN)
