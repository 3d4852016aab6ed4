"""Support vector machine on the minimum and maximum of each number over a bag; fitted in closed form.

    z   = [min_i x_i; max_i x_i], standardised                 over all instances (and steps) i of a bag
    f_c = sum_n a_{n,c} exp(-gamma |z - z_n|^2) + b_c          class c against the others, gamma = 1 / (2 D)

A bag is a box around its instances; this is the baseline for bags of vectors (Gärtner et al. 2002, the minimax kernel).
The bags that support the boundary are kept. scikit-learn's SVC finds a and b (Cortes & Vapnik 1995).
"""

from __future__ import annotations

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from unrolled.core.config import Config as Base
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.task import Known
from unrolled.layers.memory.saved_tables import Stored


class Config(Base):
    cost: float = Field(1.0, gt=0)
    """C of the support vector machine: how much an example on the wrong side costs."""


class MinMaxSvm(Stored):
    """Bags x [B, I, T, D] with mask [B, I, T] -> f [B, 1, C]."""

    TABLES = ("support", "weights")
    support: Tensor  # [n, 2 D]
    weights: Tensor  # [n, C]
    bias: Tensor  # [C]
    mean: Tensor  # [2 D]
    scale: Tensor  # [2 D]

    def __init__(self, config: Config, d_in: int, d_out: int) -> None:
        super().__init__()
        self.config, self.d_in, self.d_out = config, d_in, d_out
        self.register_buffer("support", torch.zeros(0, 2 * d_in))
        self.register_buffer("weights", torch.zeros(0, d_out))
        self.register_buffer("bias", torch.zeros(d_out))
        self.register_buffer("mean", torch.zeros(2 * d_in))
        self.register_buffer("scale", torch.ones(2 * d_in))

    def fault(self, tables: dict[str, Tensor]) -> str:
        support, weights = tables["support"], tables["weights"]
        fits = support.shape == (len(support), len(self.mean)) and weights.shape == (len(support), self.d_out)
        return "" if fits else "the sizes of its tables do not match"

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        z = (box(x, mask).to(self.mean) - self.mean) / self.scale  # [B, 2 D]
        near = torch.exp(-torch.cdist(z, self.support).square() / len(self.mean))  # [B, n]
        return (near @ self.weights + self.bias).unsqueeze(1), mask.new_ones(mask.shape[0], 1)

    def solve(self, batches: Known, held_out: Known = ()) -> None:
        """From numbers, mask and classes [B] of all bags."""
        from sklearn.svm import SVC

        held = list(batches)
        boxes, y = torch.cat([box(x, mask) for x, mask, _ in held]).double(), torch.cat([y for _, _, y in held])
        mean, deviation = boxes.mean(0), boxes.std(0, correction=0)
        scale = torch.where(deviation > 0, deviation, 1.0)
        z = ((boxes - mean) / scale).numpy()
        weights, bias = np.zeros((len(z), self.d_out)), np.full(self.d_out, -1.0)
        for c in range(self.d_out):
            own = y.numpy() == c
            if not own.any() or own.all():
                continue
            found = SVC(C=self.config.cost, gamma=1 / len(mean)).fit(z, own)
            weights[found.support_, c], bias[c] = found.dual_coef_[0], found.intercept_[0]
        kept = np.abs(weights).sum(1) > 0
        self.keep({"support": torch.from_numpy(z[kept]), "weights": torch.from_numpy(weights[kept])})
        for buffer, values in ((self.bias, torch.from_numpy(bias)), (self.mean, mean), (self.scale, scale)):
            buffer.copy_(values)


def box(x: Tensor, mask: Tensor) -> Tensor:
    """The least and the largest of each number of a bag: [B, I, T, D], or [B, T, D] of vectors -> [B, 2 D]."""
    flat, real = x.flatten(1, -2), mask.flatten(1)[..., None]  # [B, I T, D], [B, I T, 1]
    least = flat.masked_fill(~real, torch.inf).amin(1)
    return torch.cat([least, flat.masked_fill(~real, -torch.inf).amax(1)], dim=1)


def make(config: Config, sizes: Sizes) -> MinMaxSvm:
    return MinMaxSvm(config, sizes.d_in, sizes.d_out)


MODEL = ModelSpec(
    summary="baseline for bags: a support vector machine on the minimum and maximum of each number; closed form",
    kind="encoder",
    config=Config,
    tiny=Config(),
    make=make,
    reference="Cortes & Vapnik 1995; Gärtner et al. 2002",
    reads=("numbers",),
    outputs=("whole",),
    owns_head=True,
    bags="only",
    closed_form=("class",),
)
