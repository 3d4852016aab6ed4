"""Bits: independent yes-or-no answers, such as the keys of a piano or several classes at once.

    p_k = sigmoid(y_k / tau),       loss = - sum_k [w_k v_k log p_k + (1 - v_k) log(1 - p_k)]
    v_k ~ Bernoulli(sigmoid(y_k / temperature));  temperature 0: v_k = 1 where y_k > 0

tau is 1 until it is fitted to held-out targets; w `weights` are for training alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from unrolled.core.emission import Chooser, Trial, log_average
from unrolled.core.errors import DataError
from unrolled.decode.config import Decoding
from unrolled.objectives import answers, calibration, losses


@dataclass(frozen=True, eq=False)
class Bits:
    """`d_out` answers at each position; the count of a loss is that of positions, or of answers."""

    name: ClassVar[str] = "bits"
    options: ClassVar[type[Decoding]] = Decoding
    n_choices: ClassVar[None] = None

    d_out: int
    weights: Tensor | None = None  # [D], of those that are present
    counted: Literal["positions", "answers"] = "positions"
    temperature: float = 1.0

    @property
    def n_noise(self) -> int:
        return self.d_out

    def loss(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if self.counted == "answers":
            return answers.multilabel_cross_entropy(y, target, self.weights, mask)
        return losses.bernoulli(y, target, mask)

    def losses(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """Nats, summed over the bits of a position."""
        return losses.frame_losses(self.scaled(y), target, mask)

    def scaled(self, y: Tensor) -> Tensor:
        """Logits whose sigmoid is what is shown as a probability."""
        return y if self.temperature == 1 else y / self.temperature

    def calibrate(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Bits:
        return replace(self, temperature=calibration.fit_temperature_of_bits(y, target, mask))

    def mix(self, ys: Tensor, weights: Tensor) -> Tensor:
        """p = sum_k w_k p_k for each answer: y = tau log(p / (1 - p)). What the answers of one model share is lost."""
        z = self.scaled(ys)
        yes, no = (log_average(F.logsigmoid(each), weights) for each in (z, -z))
        return self.temperature * (yes - no)

    def to_json(self) -> str:
        return json.dumps({"name": self.name, "d_out": self.d_out, "temperature": self.temperature})

    def chooser(self, options: Decoding) -> Chooser:
        def choose(y: Tensor, history: Tensor, noise: Tensor) -> Tensor:
            z = y.double()  # [B, D]
            if not bool(torch.isfinite(z).all()):
                after = history.shape[1]
                raise DataError(f"the model's outputs are not finite after {after} frames, so no frame can be sampled")
            p = torch.sigmoid(z / options.temperature) if options.temperature > 0 else (z > 0).double()
            return (noise.view_as(p).to(p) < p).to(history.dtype)

        return choose

    def log_prob(self, y: Tensor, choice: Tensor) -> Tensor:
        return -F.softplus((1 - 2 * choice) * y.double()).sum(-1)


FRAMES = torch.eye(3)[torch.tensor([[0, 1, 2], [2, 1, 0]])]  # [2, 3, 3]
TINY = Trial(Bits(3), FRAMES, torch.tensor([[True] * 3, [True, False, False]]))
