"""Metrics of numbers: how far predictions are from the truth, beside predicting its mean, and beside the noise.

All take predictions and truths of one shape [N, D], [B, S, D] or [N], and a mask that lacks trailing dimensions,
True = real; what stands elsewhere, NaN included, changes nothing.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unrolled.core.errors import DataError
from unrolled.objectives.losses import l1, mse
from unrolled.objectives.metrics import mean, root_mean_square


def mean_absolute_error(y: Tensor, target: Tensor, mask: Tensor | None = None) -> float:
    """1/n sum |y - target|."""
    total, count = l1(y.double(), target.double(), mask)
    return mean(total.item(), count.item())


def root_mean_square_error(y: Tensor, target: Tensor, mask: Tensor | None = None) -> float:
    """sqrt(1/n sum (y - target)^2)."""
    total, count = mse(y.double(), target.double(), mask)
    return root_mean_square(total.item(), int(count))


def r2(y: Tensor, target: Tensor, mask: Tensor | None = None) -> float:
    """R^2 = 1 - sum (y - target)^2 / sum (target - its mean)^2, the mean of the R^2 of each output (last dimension).

    1 is perfect, 0 as good as the mean of these very targets, below 0 worse than that. An output whose truth never
    changes has R^2 1 where it is met exactly and 0 elsewhere, as in scikit-learn.

    >>> r2(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 2.0, 3.0]))
    0.5
    """
    if y.shape != target.shape:
        raise ValueError(f"y {tuple(y.shape)} and target {tuple(target.shape)} must have the same shape")
    if y.dim() == 1:
        y, target = y.unsqueeze(-1), target.unsqueeze(-1)
    real = torch.ones(y.shape[:-1], dtype=torch.bool, device=y.device) if mask is None else mask
    y, target = y[real].double(), target[real].double()  # [n, D]
    if not len(y):
        raise DataError("there is nothing to evaluate: the data has no targets; give at least one")
    error = (y - target).square().sum(0)  # [D]
    spread = (target - target.mean(0)).square().sum(0)  # [D]
    constant = torch.where(error == 0, 1.0, 0.0)
    return torch.where(spread > 0, 1 - error / spread, constant.double()).mean().item()


def decibels(signal: float, noise: float) -> float:
    """10 log10 of a ratio of powers; without noise infinite.

    >>> decibels(100.0, 1.0)
    20.0
    """
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal > 0 else -math.inf


def snr_gain(y: Tensor, noisy: Tensor, clean: Tensor, mask: Tensor | None = None) -> float:
    """What denoising gained, in decibels: snr(y) - snr(noisy) = 10 log10(sum (noisy - clean)^2 / sum (y - clean)^2).

    From totals of several batches: `decibels(noise_before, noise_after)` of the summed `mse` totals.
    """
    before, count = mse(noisy.double(), clean.double(), mask)
    after, _ = mse(y.double(), clean.double(), mask)
    mean(before.item(), count.item())  # an error where nothing is real
    return decibels(before.item(), after.item())
