"""Quantiles: numbers whose quantiles at given levels are predicted, without a formula for the distribution.

    y = (q_1 .. q_K) at levels tau_1 < .. < tau_K,      loss = 2 / K sum_k rho_k(x - q_k)
    rho_k(e) = max(tau_k e, (tau_k - 1) e)                                           Koenker & Bassett (1978)

So the loss is |x - q| for the median alone, and for many levels about the CRPS (Gneiting & Raftery 2007). In training
each output has its own level; wherever quantiles are reported they are sorted, which never makes the loss larger
(Chernozhukov, Fernandez-Val & Galichon 2010).

Between levels the quantile function Q is linear, beyond the outermost ones its tails are exponential, so that every
number has a density. With the slope s = (q_2 - q_1) / (tau_2 - tau_1) of the first segment (the last alike)

    Q(u) = q_1 + s tau_1 log(u / tau_1)  for u < tau_1,       mean = integral of Q from 0 to 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from unrolled.core.emission import Trial, average
from unrolled.core.errors import UsageError
from unrolled.emissions._numbers import SEEN, Numbers
from unrolled.objectives.losses import pinball

LEVELS = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)
NARROWEST = 1e-30  # distance of two quantiles, so that the density is finite


@dataclass(frozen=True)
class Quantiles(Numbers):
    """The spread is a factor of the distances from the median."""

    name: ClassVar[str] = "quantiles"

    levels: tuple[float, ...] = LEVELS

    def __post_init__(self) -> None:
        inside = all(0 < level < 1 for level in self.levels)
        if not inside or len(self.levels) < 2 or sorted(set(self.levels)) != list(self.levels):
            raise UsageError(
                f"invalid value levels = {list(self.levels)}: expected two or more numbers between 0 and 1, ascending"
            )

    @property
    def d_out(self) -> int:
        return len(self.levels) * self.d

    def trained(self, y: Tensor, target: Tensor) -> Tensor:
        return pinball(y.unflatten(-1, (-1, self.d)), target, self.levels)

    def each(self, y: Tensor, target: Tensor) -> Tensor:
        return pinball(self.ordered(y), target, self.levels)

    def unit(self, y: Tensor, target: Tensor, real: Tensor) -> float:
        """The mean loss, which has the unit of the data."""
        return float(self.trained(y, target)[real].mean()) if bool(real.any()) else 1.0

    def ordered(self, y: Tensor) -> Tensor:
        """The quantiles as they are reported [.., K, d]."""
        q = y.unflatten(-1, (-1, self.d)).sort(dim=-2).values
        if self.spread == 1:
            return q
        median = self._at(q, torch.full_like(q[..., 0, :], 0.5)).unsqueeze(-2)
        return median + self.spread * (q - median)

    def _segment(self, q: Tensor, i: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """q_i, tau_i and the slope of Q from there to the next level, for segments i [.., d] counted from 0."""
        tau = torch.tensor(self.levels, dtype=q.dtype, device=q.device)
        shape = np.broadcast_shapes(i.shape, q[..., 0, :].shape)  # torch's imports the compiler: 1.8 s
        i, q = i.clamp(0, len(tau) - 2).expand(shape), q.expand(*shape[:-1], *q.shape[-2:])
        left, right = (q.gather(-2, each.unsqueeze(-2)).squeeze(-2) for each in (i, i + 1))
        return left, tau[i], (right - left).clamp_min(NARROWEST) / (tau[i + 1] - tau[i])

    def _at(self, q: Tensor, u: Tensor) -> Tensor:
        """Q(u) of u [.., d]."""
        first, last = self.levels[0], self.levels[-1]
        left, tau, slope = self._segment(q, torch.bucketize(u, torch.tensor(self.levels).to(u)) - 1)
        below = first * (u / first).log().clamp_max(0)
        above = (1 - last) * ((1 - u) / (1 - last)).log().clamp_max(0)
        return left + slope * (u.clamp(first, last) - tau + below - above)

    def mean(self, y: Tensor) -> Tensor:
        q, tau = self.ordered(y), torch.tensor(self.levels).to(y)
        inside = torch.einsum("...kd,k->...d", (q[..., 1:, :] + q[..., :-1, :]) / 2, tau.diff())
        n, first, last = len(self.levels), self.levels[0], 1 - self.levels[-1]
        (_, _, low), (_, _, high) = (self._segment(q, torch.full_like(q[..., 0, :], i).long()) for i in (0, n))
        tails = first * q[..., 0, :] - first**2 * low + last * q[..., -1, :] + last**2 * high
        return inside + tails

    def quantiles(self, y: Tensor, levels: Sequence[float]) -> Tensor:
        q = self.ordered(y)
        return torch.stack([self._at(q, torch.full_like(q[..., 0, :], level)) for level in levels])

    def cdf(self, y: Tensor, value: Tensor) -> Tensor:
        q, first, last = self.ordered(y), self.levels[0], self.levels[-1]
        low, high = q[..., 0, :], q[..., -1, :]
        left, tau, slope = self._segment(q, (q <= value.unsqueeze(-2)).sum(-2) - 1)
        inside = tau + (value.clamp(low, high) - left) / slope
        below = inside * ((value - low).clamp_max(0) / (slope * first)).exp()
        above = 1 - (1 - last) * ((high - value).clamp_max(0) / (slope * (1 - last))).exp()
        return torch.where(value > high, above, below)

    def log_prob(self, y: Tensor, choice: Tensor) -> Tensor:
        q, first, last, x = self.ordered(y.double()), self.levels[0], self.levels[-1], choice.double()
        _, _, slope = self._segment(q, (q <= x.unsqueeze(-2)).sum(-2) - 1)
        below, above = (x - q[..., 0, :]).clamp_max(0) / first, (q[..., -1, :] - x).clamp_max(0) / (1 - last)
        return ((below + above) / slope - slope.log()).sum(-1)

    def rescaled(self, y: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
        q = y.unflatten(-1, (-1, self.d))
        return (shift.unsqueeze(-2) + scale.unsqueeze(-2) * q).flatten(-2)

    def mix(self, ys: Tensor, weights: Tensor) -> Tensor:
        """The weighted means of quantiles, level by level."""
        q = average(self.ordered(ys), weights)
        median = self._at(q, torch.full_like(q[..., 0, :], 0.5)).unsqueeze(-2)
        return (median + (q - median) / self.spread).flatten(-2)

    def draw(self, y: Tensor, noise: Tensor, temperature: float) -> Tensor:
        q, median = self.ordered(y), self.median(y)
        return median + temperature * (self._at(q, noise) - median)


TINY = Trial(Quantiles(2, levels=(0.1, 0.5, 0.9)), torch.linspace(-2, 3, 12).view(2, 3, 2), SEEN)
