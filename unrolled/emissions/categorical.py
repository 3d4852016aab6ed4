"""Categorical: one of V, such as the next token, a class or a tag.

    q(k) = softmax(y / tau)_k,       loss = - w_k sum_j p(j) log q(j),   p(j) = (1 - eps) delta_{j,k} + eps u(j)   (8.3)

tau is 1 until it is fitted to held-out targets (Guo et al. 2017); eps `smoothing`, u `prior`, w `weights` are for
training alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from unrolled.core.emission import Chooser, Trial, log_average
from unrolled.core.tokens import EMPTY
from unrolled.decode.choose import log_probabilities, make_chooser, token_log_prob
from unrolled.decode.config import Decoding
from unrolled.objectives import calibration, losses


@dataclass(frozen=True, eq=False)
class Categorical:
    """One of `d_out`; a target that is `ignore` is none."""

    name: ClassVar[str] = "categorical"
    options: ClassVar[type[Decoding]] = Decoding
    n_noise: ClassVar[int] = 1

    d_out: int
    ignore: int = EMPTY
    smoothing: float = 0.0
    prior: Tensor | None = None  # [V]
    weights: Tensor | None = None  # [V]
    never: tuple[int, ...] = ()  # what is not chosen
    temperature: float = 1.0

    @property
    def n_choices(self) -> int:
        return self.d_out

    def loss(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        target = self._real(target, mask)
        return losses.cross_entropy(y, target, self.smoothing, self.prior, self.ignore, self.weights)

    def losses(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """Nats."""
        return losses.token_losses(self.scaled(y), self._real(target, mask), ignore=self.ignore)

    def scaled(self, y: Tensor) -> Tensor:
        """Logits whose softmax is what is shown as a probability."""
        return y if self.temperature == 1 else y / self.temperature

    def calibrate(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Categorical:
        target = self._real(target, mask)
        found = calibration.fit_temperature(y.flatten(0, -2), target.flatten(), ignore=self.ignore)
        return replace(self, temperature=found)

    def log_probabilities(self, y: Tensor) -> Tensor:
        return log_probabilities(self.scaled(y))

    def mix(self, ys: Tensor, weights: Tensor) -> Tensor:
        """q = sum_k w_k q_k, exactly: y = tau log q."""
        return self.temperature * log_average(self.scaled(ys).log_softmax(-1), weights)

    def to_json(self) -> str:
        return json.dumps({"name": self.name, "d_out": self.d_out, "temperature": self.temperature})

    def chooser(self, options: Decoding) -> Chooser:
        return make_chooser(options, self.never)

    def log_prob(self, y: Tensor, choice: Tensor) -> Tensor:
        return token_log_prob(y, choice)

    def _real(self, target: Tensor, mask: Tensor | None) -> Tensor:
        return target if mask is None else target.masked_fill(~mask, self.ignore)


TOKENS = torch.tensor([[3, 1, 4, 2], [2, 2, 0, 0]])
TINY = Trial(Categorical(5), TOKENS, TOKENS != EMPTY)
