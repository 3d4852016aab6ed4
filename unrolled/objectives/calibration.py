"""Calibration: whether something that is said with probability 0.8 is true four times out of five.

    ECE = sum_b n_b / n |accuracy_b - confidence_b|                   Naeini et al. (2015); Guo et al. (2017)
    p = softmax(z / T),  T = argmin of the nats of validation labels  temperature scaling, Guo et al. (2017)

In beta = 1/T the nats are convex: with q = softmax(beta z) and labels y, d/dbeta = sum_i (E_q[z_i] - E_y[z_i]) and the
second derivative is sum_i Var_q[z_i], so Newton's iteration, kept inside a shrinking bracket, finds the minimum.

One example more is thought to have any label with equal probability (Laplace's rule, as in Platt 1999): each of the n
labels keeps n / (n + 1). Else a few labels that are all predicted rightly would make the model endlessly sure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from unrolled.core.errors import DataError
from unrolled.objectives.answers import NO_LABEL

COLDEST, HOTTEST = 0.05, 20.0  # temperatures beyond these say that there are too few labels to fit one


class Reliability(NamedTuple):
    """What was said and what was true in bins of equal width of the confidence; each [n_bins], empty bins are 0."""

    n: Tensor  # examples
    confidence: Tensor  # the mean of what was said
    accuracy: Tensor  # how often it was true


def reliability(probabilities: Tensor, labels: Tensor, n_bins: int = 15, ignore: int = NO_LABEL) -> Reliability:
    """Bins of the highest probability of each row [N, C] and of whether that class was right; labels [N].

    For yes-or-no answers with probability p give [1 - p, p] as two classes.
    """
    real = labels != ignore
    confidence, predicted = probabilities[real].double().max(dim=-1)  # [n]
    right = (predicted == labels[real]).double()
    place = (confidence * n_bins).ceil().long().sub(1).clamp(0, n_bins - 1)  # bin b holds (b / n, (b + 1) / n]
    zeros = confidence.new_zeros(n_bins)
    count = zeros.index_add(0, place, torch.ones_like(right))
    share = count.clamp_min(1)
    return Reliability(
        count.long(), zeros.index_add(0, place, confidence) / share, zeros.index_add(0, place, right) / share
    )


def expected_calibration_error(bins: Reliability) -> float:
    """The mean distance between what was said and what was true, over examples.

    >>> expected_calibration_error(reliability(torch.tensor([[0.75, 0.25]] * 4), torch.tensor([0, 0, 1, 1])))
    0.25
    """
    n = int(bins.n.sum())
    if n == 0:
        raise DataError("there is nothing to evaluate: the data has no targets; give at least one")
    return float((bins.n * (bins.accuracy - bins.confidence).abs()).sum() / n)


def fit_temperature(logits: Tensor, labels: Tensor, ignore: int = NO_LABEL) -> float:
    """The T in [0.05, 20] for which softmax(z / T) has the fewest nats on validation labels [N], z [N, C].

    Divide logits by it; the order of the classes, and so the accuracy, stays. Without labels it is 1.
    """
    real = labels != ignore
    z, y = logits[real].detach().double(), labels[real].unsqueeze(-1)
    z = z - z.amax(dim=-1, keepdim=True)  # [n, C]
    possible = z != -torch.inf
    z = z.masked_fill(~possible, -1e6)  # an impossible class, whose -inf times 0 would be NaN
    any_label = (z * possible).sum(dim=-1) / possible.sum(dim=-1)  # [n]
    share = 1 / (len(y) + 1)
    told = (1 - share) * z.gather(-1, y).squeeze(-1) + share * any_label  # [n], E_y[z]

    def derivatives(beta: float) -> tuple[float, float]:
        q = (beta * z).softmax(dim=-1)
        expected = (q * z).sum(dim=-1)  # [n], E_q[z]
        around = (q * (z - expected.unsqueeze(-1)).square()).sum(dim=-1)  # [n], Var_q[z]
        return (expected - told).sum().item(), around.sum().item()

    return 1 / _root(derivatives) if len(y) else 1.0


def fit_temperature_of_bits(logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> float:
    """The same for yes-or-no answers: sigmoid(z / T), z and truths [N, C], mask [N] or [N, C]."""
    real = torch.ones_like(logits, dtype=torch.bool)
    if mask is not None:
        real = mask.view(*mask.shape, *[1] * (logits.dim() - mask.dim())).expand_as(logits)
    z, v = logits[real].detach().double(), targets[real].double()  # [n]
    share = 1 / (len(z) + 1)
    v = (1 - share) * v + share / 2

    def derivatives(beta: float) -> tuple[float, float]:
        p = (beta * z).sigmoid()
        return (z * (p - v)).sum().item(), (z.square() * p * (1 - p)).sum().item()

    return 1 / _root(derivatives) if len(z) else 1.0


def _root(derivatives: Callable[[float], tuple[float, float]]) -> float:
    """Where the slope of a convex function of beta is 0, or the end of [1/HOTTEST, 1/COLDEST] where it is not."""
    low, high = 1 / HOTTEST, 1 / COLDEST
    if math.isnan(derivatives(low)[0]):
        raise DataError("a temperature cannot be fitted: the model's logits are infinite or NaN")
    if derivatives(low)[0] >= 0:
        return low
    if derivatives(high)[0] <= 0:
        return high
    beta = 1.0
    for _ in range(100):
        slope, curvature = derivatives(beta)
        if slope < 0:
            low = beta
        else:
            high = beta
        step = beta - slope / curvature if curvature > 0 else math.nan
        beta, before = (step if low < step < high else (low + high) / 2), beta
        if abs(beta - before) <= 1e-10 * beta:
            break
    return beta


def fit_spread(loss: Callable[[float], float], weight: float = 1.0) -> float:
    """The factor f in [0.05, 20] of a distribution's width for which held-out targets have the least loss(f).

    One number more is thought to lie one standard deviation off, so that a few targets that are met exactly do not make
    the width 0: it adds weight * (log f + f^-2 / 2). By golden section in log f (Kiefer 1953).
    """

    def total(log_f: float) -> float:
        return loss(math.exp(log_f)) + weight * (log_f + math.exp(-2 * log_f) / 2)

    low, high, ratio = math.log(COLDEST), math.log(HOTTEST), (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = total(left), total(right)
    while high - low > 1e-7:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = total(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = total(right)
    return math.exp((low + high) / 2)
