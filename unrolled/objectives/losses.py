"""Losses: pure functions of tensors that return (total, count), never means, so that batches add up exactly.

Targets that are <empty> (id 0) and positions whose mask is False do not exist: whatever stands there, NaN included,
changes neither the value nor any gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from unrolled.core.tokens import EMPTY


def token_losses(
    logits: Tensor, targets: Tensor, smoothing: float = 0.0, prior: Tensor | None = None, ignore: int = EMPTY
) -> Tensor:
    """The cross entropy of every position in nats, 0 where the target is ignored: [B, T].

    H(p, q) = -sum_k p(k) log q(k) = H(p) + KL(p || q)
    q(k) = exp(z_k) / sum_j exp(z_j)
    p(k) = (1 - eps) delta_{k,y} + eps u(k)                                                     (8.3)

    z `logits` [B, T, V], y `targets` [B, T], eps `smoothing`, and u the `prior` [V] of the training data or, without
    one, uniform over the vocabulary (Szegedy et al. 2016). Smoothing is for training; metrics leave it at 0.
    `ignore` is the target that does not count; class labels, whose 0 is a class, pass -1.
    """
    real = targets != ignore  # [B, T]
    y = targets.masked_fill(~real, 0)
    z = logits.masked_fill(~real.unsqueeze(-1), 0.0)  # before the softmax: 0 * NaN in its gradient would be NaN
    log_q = torch.log_softmax(z, dim=-1, dtype=torch.promote_types(z.dtype, torch.float32))  # [B, T, V]
    losses = F.nll_loss(log_q.flatten(0, -2), y.flatten(), reduction="none").view(y.shape)  # [B, T]
    if smoothing:
        losses = (1 - smoothing) * losses + smoothing * _against_prior(log_q, prior)
    return losses.masked_fill(~real, 0.0)


def _against_prior(log_q: Tensor, prior: Tensor | None) -> Tensor:
    """-sum_k u(k) log q(k): [B, T]. A k with u(k) = 0 is left out even where log q(k) is -inf."""
    if prior is None:
        return -log_q.mean(dim=-1)
    u = prior.to(log_q)
    return -(log_q.masked_fill(u == 0, 0.0) @ u)


def cross_entropy(
    logits: Tensor,
    targets: Tensor,
    smoothing: float = 0.0,
    prior: Tensor | None = None,
    ignore: int = EMPTY,
    weights: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`token_losses` of targets k, summed, and how many were not ignored; each counts w_k where there are weights [V].

    total = sum_i w_{k_i} H(k_i, softmax(z_i))        count = sum_i w_{k_i}

    >>> total, count = cross_entropy(torch.zeros(1, 3, 8), torch.tensor([[5, 7, EMPTY]]))
    >>> round(total.item() / count.item(), 4), count.item()  # log 8 nats each, <empty> not counted
    (2.0794, 2)
    """
    losses = token_losses(logits, targets, smoothing, prior, ignore)
    real = targets != ignore
    if weights is None:
        return losses.sum(), real.sum()
    w = weights.to(losses)[targets.masked_fill(~real, 0)].masked_fill(~real, 0.0)
    return (w * losses).sum(), w.sum()


def frame_losses(logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> Tensor:
    """The cross entropy of every frame of independent bits in nats, 0 where the mask is False: [B, T].

    H = -sum_k [v_k log p_k + (1 - v_k) log(1 - p_k)],  p_k = sigmoid(z_k)

    z `logits` [B, T, D], v `targets` [B, T, D] of zeros and ones.
    """
    if mask is not None:
        logits = logits.masked_fill(~mask.unsqueeze(-1), 0.0)  # before the logarithm: 0 * NaN would be NaN
        targets = targets.masked_fill(~mask.unsqueeze(-1), 0.0)
    losses = F.binary_cross_entropy_with_logits(logits, targets.to(logits), reduction="none").sum(dim=-1)  # [B, T]
    return losses if mask is None else losses.masked_fill(~mask, 0.0)


def bernoulli(logits: Tensor, targets: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """`frame_losses` summed, and how many frames there are.

    >>> total, count = bernoulli(torch.zeros(1, 2, 88), torch.zeros(1, 2, 88), torch.tensor([[True, False]]))
    >>> round(total.item() / count.item(), 4), count.item()  # 88 log 2 nats, the padding not counted
    (60.997, 1)
    """
    losses = frame_losses(logits, targets, mask)
    return losses.sum(), torch.tensor(losses.numel(), device=losses.device) if mask is None else mask.sum()


def _errors(y: Tensor, target: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """y - target with 0 where the mask is False, and how many numbers are real; the mask lacks trailing dimensions."""
    if y.shape != target.shape:
        raise ValueError(f"y {tuple(y.shape)} and target {tuple(target.shape)} must have the same shape")
    error = y - target
    if mask is None:
        return error, torch.tensor(error.numel(), device=y.device)
    real = mask.view(*mask.shape, *[1] * (error.dim() - mask.dim())).expand_as(error)
    return torch.where(real, error, 0.0), real.sum()


def l1(y: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """sum |y - target| over the real numbers, and how many there are; y, target [B, T, D], mask [B, T] True = real."""
    error, count = _errors(y, target, mask)
    return error.abs().sum(), count


def mse(y: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """sum (y - target)^2 over the real numbers, and how many there are; y, target [B, T, D], mask [B, T] True = real.

    >>> total, count = mse(torch.tensor([[1.0, 5.0]]), torch.tensor([[3.0, 9.0]]), torch.tensor([[True, False]]))
    >>> total.item(), count.item()
    (4.0, 1)
    """
    error, count = _errors(y, target, mask)
    return error.square().sum(), count


def huber(y: Tensor, target: Tensor, mask: Tensor | None = None, delta: float = 1.0) -> tuple[Tensor, Tensor]:
    """sum h(y - target) over the real numbers, and how many there are; y, target [B, T, D], mask [B, T] True = real.

    h(e) = e^2 / 2 where |e| <= delta, else delta (|e| - delta / 2)                        Huber (1964)

    >>> total, count = huber(torch.tensor([0.5, 3.0]), torch.zeros(2))
    >>> total.item(), count.item()
    (2.625, 2)
    """
    error, count = _errors(y, target, mask)
    return F.huber_loss(error, torch.zeros_like(error), reduction="sum", delta=delta), count


def pinball(q: Tensor, target: Tensor, levels: Sequence[float]) -> Tensor:
    """The loss of K quantiles of every number [.., d]: 2 / K sum_k max(tau_k e_k, (tau_k - 1) e_k), e_k = target - q_k.

    q [.., K, d] at the levels tau [K], target [.., d]. The mean of each term is least where q_k is the quantile
    (Koenker & Bassett 1978); with the factor 2 the median alone costs |e|, and many levels about the CRPS.

    >>> pinball(torch.tensor([[1.0], [4.0]]), torch.tensor([3.0]), [0.5, 0.9]).item()  # |3 - 1| / 2 + 0.1
    1.100000023841858
    """
    tau = torch.tensor(levels, dtype=q.dtype, device=q.device).unsqueeze(-1)  # [K, 1]
    e = target.unsqueeze(-2) - q  # [.., K, d]
    return 2 * torch.maximum(tau * e, (tau - 1) * e).mean(dim=-2)
