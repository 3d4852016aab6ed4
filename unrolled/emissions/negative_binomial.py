"""Negative binomial: counts 0, 1, 2, .. that vary more than a Poisson distribution allows.

    y = (log m, log alpha),     r = 1 / alpha,   e = log(alpha m),    mean m, variance m + alpha m^2
    loss = log G(r) - log G(x + r) + log G(x + 1) + r log(1 + e^e) + x log(1 + e^-e)                        nats
    P(X <= x) = I_q(r, x + 1),   q = 1 / (1 + alpha m)

G is the gamma function, I the regularised incomplete beta function (Johnson, Kemp & Kotz 2005, chapter 5). The
loss is defined for all x >= 0; counts are whole numbers, and so are draws and quantiles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from unrolled.core.emission import Trial
from unrolled.emissions._numbers import SEEN, Numbers, bounded, moments

LEAST, MOST = -16.0, 8.0  # of log alpha: from nearly Poisson to nearly always 0

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NegativeBinomial(Numbers):
    """The spread is a factor of alpha."""

    name: ClassVar[str] = "negative-binomial"

    @property
    def d_out(self) -> int:
        return 2 * self.d

    def parameters(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """log m and log alpha, each [.., d]."""
        log_m, log_alpha = self.blocks(y)
        return bounded(log_m), log_alpha.clamp(LEAST, MOST) + math.log(self.spread)

    def each(self, y: Tensor, target: Tensor) -> Tensor:
        log_m, log_alpha = (part.double() for part in self.parameters(y))  # differences of large numbers
        x, r, e = target.double(), (-log_alpha).exp(), log_alpha + log_m
        ways = torch.lgamma(r) - torch.lgamma(x + r) + torch.lgamma(x + 1)
        return (ways + r * F.softplus(e) + x * F.softplus(-e)).to(y)

    def mean(self, y: Tensor) -> Tensor:
        return self.parameters(y)[0].exp()

    def quantiles(self, y: Tensor, levels: Sequence[float]) -> Tensor:
        """The smallest counts x with P(X <= x) >= level."""
        from scipy.stats import nbinom

        r, q = self._arrays(y)
        return torch.stack([torch.as_tensor(nbinom.ppf(level, r, q)) for level in levels]).to(y)

    def cdf(self, y: Tensor, value: Tensor) -> Tensor:
        from scipy.stats import nbinom

        r, q = self._arrays(y)
        return torch.as_tensor(nbinom.cdf(value.double().cpu().numpy(), r, q)).to(y)

    def rescaled(self, y: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
        """Counts whose mean is `scale` times as large, with the same alpha; the shift must be 0."""
        if bool(shift.any()):
            raise ValueError("counts can be rescaled, but not shifted: shift must be 0")
        log_m, log_alpha = self.blocks(y)
        log_m = bounded(log_m) + scale.log()
        return torch.cat([log_m, log_alpha.expand_as(log_m)], dim=-1)

    def mix(self, ys: Tensor, weights: Tensor) -> Tensor:
        """A negative binomial distribution with the mean and the variance of the mixture."""
        log_m, log_alpha = self.parameters(ys)
        m, beyond = moments(log_m.exp(), (log_alpha + 2 * log_m).exp(), weights)  # the variance without its part m
        return torch.cat([m.log(), beyond.log() - 2 * m.log() - math.log(self.spread)], dim=-1)

    def draw(self, y: Tensor, noise: Tensor, temperature: float) -> Tensor:
        """The quantile of u' = Phi(temperature Phi^-1(u)), which is u at temperature 1 and 1/2 at temperature 0."""
        from scipy.stats import nbinom

        u = noise if temperature == 1 else torch.special.ndtr(temperature * torch.special.ndtri(noise))
        r, q = self._arrays(y)
        return torch.as_tensor(nbinom.ppf(u.cpu().numpy(), r, q)).to(y)

    def _arrays(self, y: Tensor) -> tuple[Array, Array]:
        """r and q in double precision."""
        log_m, log_alpha = self.parameters(y.detach().double())
        return (-log_alpha).exp().cpu().numpy(), torch.sigmoid(-log_alpha - log_m).cpu().numpy()


TINY = Trial(NegativeBinomial(2), torch.tensor([3.0, 0, 1, 7, 2, 0, 0, 1, 4, 1, 0, 12]).view(2, 3, 2), SEEN)
