"""Pen: the next point of a drawing, its way (dx, dy) by a mixture of bivariate Gaussians, and what the pen does then.

    y = (pi^, mu_1, mu_2, sigma^_1, sigma^_2, rho^ of K components; e^ of the states down, lift, end)     6 K + 3

    pi = softmax(pi^),   sigma = exp(sigma^),   rho = tanh(rho^)                                  eqs (18)-(22)
    Z = z_1^2 + z_2^2 - 2 rho z_1 z_2,          z_i = (x_i - mu_i) / sigma_i                      eq. (25)
    N = exp(-Z / (2 (1 - rho^2))) / (2 pi sigma_1 sigma_2 sqrt(1 - rho^2))                        eq. (24)
    loss = - log sum_k pi_k N_k(dx, dy) - log softmax(e^)[state]                                  eq. (26), in nats
    bias b:  pi = softmax(pi^ (1 + b)),   sigma = exp(sigma^ - b)                                 eqs (61)-(62)

Graves (2013), sections 4 and 5.4. He has one bit that ends a stroke; with three states a drawing ends by itself, after
the point that the state belongs to (as in Ha & Eck 2018). A target is (dx, dy, down, lift, end), the states one-hot. So
that nothing overflows, log sigma = L + softplus(sigma^ - L) with sigma > e^L = 0.01, the sum over k is a log-sum-exp,
and rho = 0.999 tanh(rho^).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from unrolled.core.config import Config
from unrolled.core.emission import Chooser, Trial, log_average
from unrolled.core.finite import not_finite
from unrolled.objectives import calibration

STATES = ("down", "lift", "end")
WIDTH = 2 + len(STATES)  # of a point
LEAST, MOST = math.log(0.01), 10.0  # of log sigma
STEEPEST = 0.999  # of |rho|
CLOSE = 1 - 2.0**-20  # to 1, in any precision, so that atanh is finite
HALF = 2.0**-53  # half the distance of uniform numbers, so that none of them is 0


class Bias(Config):
    """How points are drawn."""

    bias: float = Field(0.0, ge=0, le=20)
    """0 samples from the model as it is; larger values draw more regular shapes."""


class Mixture(NamedTuple):
    """The parameters of a mixture, and the states after it."""

    log_pi: Tensor  # [.., K]
    mu: Tensor  # [.., K, 2]
    log_sigma: Tensor  # [.., K, 2]
    rho: Tensor  # [.., K]
    log_e: Tensor  # [.., 3]


@dataclass(frozen=True)
class Pen:
    """`n_mixtures` components; the spread, 1 until it is fitted to held-out points, is a factor of sigma."""

    name: ClassVar[str] = "pen"
    options: ClassVar[type[Bias]] = Bias
    n_choices: ClassVar[None] = None
    n_noise: ClassVar[int] = 4

    n_mixtures: int = 20
    spread: float = 1.0

    @property
    def d_out(self) -> int:
        return 6 * self.n_mixtures + len(STATES)

    def parameters(self, y: Tensor, bias: float = 0.0) -> Mixture:
        pi, mu_1, mu_2, s_1, s_2, r = y[..., : -len(STATES)].unflatten(-1, (6, self.n_mixtures)).unbind(-2)
        s = LEAST + F.softplus(torch.stack([s_1, s_2], -1) - LEAST)
        return Mixture(
            (pi * (1 + bias)).log_softmax(-1), torch.stack([mu_1, mu_2], -1),
            s.clamp(max=MOST) - bias + math.log(self.spread), STEEPEST * r.tanh(),
            y[..., -len(STATES) :].log_softmax(-1),
        )  # fmt: skip

    # ---- losses

    def each(self, y: Tensor, target: Tensor) -> Tensor:
        """The loss of every point [..]."""
        log_pi, mu, s, rho, log_e = self.parameters(y)
        z_1, z_2 = ((target[..., None, :2] - mu) * (-s).exp()).unbind(-1)  # [.., K]
        Z = z_1.square() + z_2.square() - 2 * rho * z_1 * z_2
        left = 1 - rho.square()
        log_n = -Z / (2 * left) - s.sum(-1) - left.log() / 2 - math.log(2 * math.pi)
        return -torch.logsumexp(log_pi + log_n, -1) - (target[..., 2:] * log_e).sum(-1)

    def loss(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        y, target, real = _real(y, target, mask)
        return replace(self, spread=1.0).each(y, target).masked_fill(~real, 0.0).sum(), real.sum()

    def losses(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        y, target, real = _real(y, target, mask)
        return self.each(y, target).masked_fill(~real, 0.0)

    def calibrate(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Pen:
        y, target, real = _real(y.detach().double(), target, mask)
        if not bool(real.any()):
            return self
        y, target = y[real], target[real]
        found = calibration.fit_spread(lambda spread: float(replace(self, spread=spread).each(y, target).sum()), 2.0)
        return replace(self, spread=found)

    def mix(self, ys: Tensor, weights: Tensor) -> Tensor:
        """K components again, around those of the model with the largest weight: each component of the others joins the
        nearest of these, and what joined has the weight, mean and covariance of all together. States are averaged."""
        log_pi, mu, s, rho, log_e = self.parameters(ys)
        own = weights.to(ys)[(..., *[None] * (log_pi.dim() - weights.dim()))]  # [M, .. or 1, 1]
        pi = log_pi.exp() * own  # [M, .., K]
        covariance = _covariance(s, rho)  # [M, .., K, 2, 2]
        leader = own.expand(*log_pi.shape[:-1], 1).argmax(0)  # [.., 1], which model
        means = mu.movedim(0, -3).flatten(-3, -2)  # [.., M K, 2]
        covariances, shares = covariance.movedim(0, -4).flatten(-4, -3), pi.movedim(0, -2).flatten(-2)
        first = mu.take_along_dim(leader[None, ..., None], 0)[0]  # [.., K, 2]
        its = covariance.take_along_dim(leader[None, ..., None, None], 0)[0]  # [.., K, 2, 2]
        far = (means.unsqueeze(-2) - first.unsqueeze(-3)).square().sum(-1)  # [.., M K, K]
        far = far + (covariances.unsqueeze(-3) - its.unsqueeze(-4)).square().sum((-2, -1))
        K, number = self.n_mixtures, torch.arange(means.shape[-2], device=ys.device)
        nearest = torch.where(number // K == leader, number % K, far.argmin(-1))  # [.., M K]
        joined = F.one_hot(nearest, K).to(shares) * shares.unsqueeze(-1)  # [.., M K, K]
        total = joined.sum(-2).clamp_min(torch.finfo(shares.dtype).tiny)  # [.., K]
        part = (joined / total.unsqueeze(-2)).transpose(-2, -1)  # [.., K, M K]
        m = part @ means  # [.., K, 2]
        off = means.unsqueeze(-3) - m.unsqueeze(-2)  # [.., K, M K, 2]
        spread = covariances.unsqueeze(-4) + off.unsqueeze(-1) * off.unsqueeze(-2)  # [.., K, M K, 2, 2]
        return self.outputs(total.log(), m, (part[..., None, None] * spread).sum(-3), log_average(log_e, weights))

    def outputs(self, log_pi: Tensor, mu: Tensor, covariance: Tensor, log_e: Tensor) -> Tensor:
        """The y that means these components: log pi [.., K], mu [.., K, 2], covariance [.., K, 2, 2], log e [.., 3].

        A sigma below the least one, and a correlation above the largest, become that."""
        s = covariance.diagonal(dim1=-2, dim2=-1).log() / 2  # [.., K, 2]
        rho = covariance[..., 0, 1] * (-s.sum(-1)).exp()
        above = (s - math.log(self.spread) - LEAST).clamp_min(1e-6)
        s = LEAST + above + torch.log(-torch.expm1(-above))
        r = torch.atanh((rho / STEEPEST).clamp(-CLOSE, CLOSE))
        return torch.cat([log_pi, *mu.unbind(-1), *s.unbind(-1), r, log_e], -1)

    def to_json(self) -> str:
        told = {"n_mixtures": self.n_mixtures, "spread": self.spread, "states": STATES}
        return json.dumps({"name": self.name, "d_out": self.d_out, **told})

    # ---- draws

    def chooser(self, options: Bias) -> Chooser:
        def choose(y: Tensor, history: Tensor, noise: Tensor) -> Tensor:
            if not bool((finite := y.isfinite()).all()):
                raise not_finite(y[~finite][0].item(), f"point {history.shape[1]}")
            u = noise.view(len(y), self.n_noise).to(y.device, torch.float64) + HALF
            return self.draw(y.double(), u, options.bias).to(history.dtype)

        return choose

    def draw(self, y: Tensor, noise: Tensor, bias: float) -> Tensor:
        """Points [B, 5]: a component, then its ellipse, then a state, from uniform noise [B, 4]."""
        log_pi, mu, s, rho, log_e = self.parameters(y, bias)
        k = _picked(log_pi, noise[:, 0])  # [B]
        rows = torch.arange(len(y), device=y.device)
        mu, s, rho = mu[rows, k], s[rows, k], rho[rows, k]  # [B, 2], [B, 2], [B]
        n_1, n_2 = torch.special.ndtri(noise[:, 1:3]).unbind(-1)
        ellipse = torch.stack([n_1, rho * n_1 + (1 - rho.square()).sqrt() * n_2], -1)  # [B, 2]
        state = F.one_hot(_picked(log_e, noise[:, 3]), len(STATES))
        return torch.cat([mu + s.exp() * ellipse, state.to(mu)], -1)

    def log_prob(self, y: Tensor, choice: Tensor) -> Tensor:
        return -self.each(y.double(), choice.double())

    def ends(self, choice: Tensor) -> Tensor:
        """[B]: whether a drawing ends with its point."""
        return choice[:, -1] > 0


def _real(y: Tensor, target: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """y and target with 0 where there is no point, before any logarithm; and where there is one [..]."""
    real = ~target.isnan().any(-1) if mask is None else mask
    y = y.to(torch.promote_types(y.dtype, torch.float32))
    gone = ~real.unsqueeze(-1)
    return y.masked_fill(gone, 0.0), target.to(y).masked_fill(gone, 0.0), real


def _covariance(log_sigma: Tensor, rho: Tensor) -> Tensor:
    """[.., 2, 2] of log sigma [.., 2] and rho [..]."""
    a, b = log_sigma.exp().unbind(-1)
    return torch.stack([a * a, rho * a * b, rho * a * b, b * b], -1).unflatten(-1, (2, 2))


def _picked(log_p: Tensor, u: Tensor) -> Tensor:
    """[B]: the first choice at which the cumulated probability passes u."""
    p = log_p.exp().cumsum(-1)  # [B, n]
    return (p < u.unsqueeze(-1) * p[:, -1:]).sum(-1)


_POINTS = torch.tensor([[0.3, -1.0, 1, 0, 0], [1.2, 0.4, 0, 1, 0], [-2.0, 0.1, 0, 0, 1]])
TINY = Trial(Pen(2), torch.stack([_POINTS, _POINTS.flip(0)]), torch.tensor([[True, True, True], [True, False, False]]))
