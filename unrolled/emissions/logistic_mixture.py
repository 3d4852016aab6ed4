"""Logistic mixture: one of L levels between -1 and 1, each with the mass that a mixture of logistics gives to it.

    p(x) = sum_k pi_k [sigma((x + h - mu_k) / s_k) - sigma((x - h - mu_k) / s_k)],       h = 1 / (L - 1)

y [.., 3 K] = (logits of pi, mu, log s); the first level also has all that is below it, the last all above. Salimans et
al. 2017, eq. (2); of samples of sound van den Oord et al. 2018 (Parallel WaveNet). With a = (x + h - mu) / s and
b = (x - h - mu) / s no two nearly equal numbers are subtracted:

    sigma(a) - sigma(b) = sigma(a) sigma(-b) (1 - e^(b - a))

`spread` widens or narrows all s; it is 1 until it is fitted to held-out targets. log s is held above log(h) - 4, where
all mass of a component is in one level.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from unrolled.core.emission import Chooser, Trial, average
from unrolled.core.finite import not_finite
from unrolled.decode.config import Decoding
from unrolled.objectives import calibration

NARROWEST, WIDEST = -4.0, 7.0  # of log s: the first relative to half the width of a level
HALF = 2.0**-53  # half the distance of uniform numbers, so that none of them is 0


@dataclass(frozen=True)
class LogisticMixture:
    """One of `levels` levels; targets [B, T, 1] are their places 2 c / (L - 1) - 1."""

    name: ClassVar[str] = "logistic-mixture"
    options: ClassVar[type[Decoding]] = Decoding
    n_noise: ClassVar[int] = 2
    n_choices: ClassVar[None] = None

    components: int = 10
    levels: int = 256
    spread: float = 1.0

    @property
    def d_out(self) -> int:
        return 3 * self.components

    @property
    def half(self) -> float:
        return 1 / (self.levels - 1)

    def blocks(self, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log pi, mu, log s: [.., K] each."""
        logits, mu, log_s = y.chunk(3, dim=-1)
        log_s = (log_s + math.log(self.spread)).clamp(math.log(self.half) + NARROWEST, WIDEST)
        return logits.log_softmax(-1), mu, log_s

    def log_mass(self, y: Tensor, x: Tensor) -> Tensor:
        """log p [..] of places x [..]."""
        log_pi, mu, log_s = self.blocks(y)
        s, off = log_s.exp(), x.unsqueeze(-1) - mu  # [.., K]
        a, b = (off + self.half) / s, (off - self.half) / s
        inside = F.logsigmoid(a) + F.logsigmoid(-b) + torch.log(-torch.expm1(-2 * self.half / s))
        first, last = (x < self.half - 1).unsqueeze(-1), (x > 1 - self.half).unsqueeze(-1)
        log_p = torch.where(first, F.logsigmoid(a), torch.where(last, F.logsigmoid(-b), inside))
        return torch.logsumexp(log_pi + log_p, dim=-1)

    def density(self, y: Tensor, x: Tensor) -> Tensor:
        """The log-density [..] of the mixture itself at any x [..], without levels; differentiable in x."""
        log_pi, mu, log_s = self.blocks(y)
        z = (x.unsqueeze(-1) - mu) * (-log_s).exp()  # [.., K]
        return torch.logsumexp(log_pi - log_s + F.logsigmoid(z) + F.logsigmoid(-z), dim=-1)

    # ---- losses

    def _real(self, y: Tensor, target: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        real = ~target.isnan().any(-1) if mask is None else mask
        if real.dim() == target.dim():
            real = real.all(-1)
        y = y.to(torch.promote_types(y.dtype, torch.float32))
        return y.masked_fill(~real.unsqueeze(-1), 0.0), target.to(y).squeeze(-1).masked_fill(~real, 0.0), real

    def loss(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        y, x, real = self._real(y, target, mask)
        return -replace(self, spread=1.0).log_mass(y, x).masked_fill(~real, 0.0).sum(), real.sum()

    def losses(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """Nats."""
        y, x, real = self._real(y, target, mask)
        return -self.log_mass(y, x).masked_fill(~real, 0.0)

    def calibrate(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> LogisticMixture:
        y, x, real = self._real(y.detach(), target, mask)
        y, x = y.double(), x.double()

        def total(spread: float) -> float:
            return float(-replace(self, spread=spread).log_mass(y, x)[real].sum())

        return replace(self, spread=calibration.fit_spread(total, 1.0) if bool(real.any()) else 1.0)

    def mix(self, ys: Tensor, weights: Tensor) -> Tensor:
        """Component by component the mean of logits, mu and log s: K outputs have no room for all components."""
        return average(ys, weights)

    # ---- draws

    def chooser(self, options: Decoding) -> Chooser:
        def choose(y: Tensor, history: Tensor, noise: Tensor) -> Tensor:
            if not bool((finite := y.isfinite()).all()):
                raise not_finite(y[~finite][0].item(), f"step {history.shape[1] + 1}")
            u = noise.view(len(y), 2).to(y.device, torch.float64) + HALF
            return self.draw(y.double(), u, options.temperature).to(history.dtype)

        return choose

    def draw(self, y: Tensor, u: Tensor, temperature: float) -> Tensor:
        """Places [B, 1] of outputs y [B, 3 K] and uniform noise [B, 2]: a component, then x = mu + s logit(u)."""
        log_pi, mu, log_s = self.blocks(y)
        if temperature > 0:
            below = (log_pi / temperature).softmax(-1).cumsum(-1)  # [B, K]
            k = (u[:, :1] >= below[:, :-1]).sum(-1, keepdim=True)  # [B, 1]
        else:
            k = log_pi.argmax(-1, keepdim=True)
        x = mu.gather(-1, k) + temperature * log_s.gather(-1, k).exp() * torch.logit(u[:, 1:])
        return ((x.clamp(-1, 1) + 1) / 2 * (self.levels - 1)).round() * (2 * self.half) - 1

    def log_prob(self, y: Tensor, choice: Tensor) -> Tensor:
        return self.log_mass(y.double(), choice.double().squeeze(-1))

    def to_json(self) -> str:
        return json.dumps({"name": self.name, "d_out": self.d_out, **asdict(self)})


PLACES = torch.tensor([[0, 3, 7], [5, 1, 0]]).double().mul(2 / 7).sub(1).unsqueeze(-1)  # [2, 3, 1]
TINY = Trial(LogisticMixture(2, 8), PLACES, torch.tensor([[True] * 3, [True, True, False]]))
