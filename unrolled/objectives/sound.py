"""Losses of sound as a whole, as pure functions: how much power each frequency has over time.

P[k] = mean over frames m of |sum_i x[m h + i] w[i] e^(-2 pi j i k / n)|^2 / (sum_i w[i])^2     (Hann window w)

power loss     |P_x - P_y|^2 / |P_y|^2                              (van den Oord et al. 2018, 5.1, relative)
distance       sqrt(mean over k of (10 log10 P_x[k] - 10 log10 P_y[k])^2)     in decibels
"""

from __future__ import annotations

import torch
from torch import Tensor

FLOOR = 1e-8  # of the power: -80 dB of a full-scale wave


def mean_power(x: Tensor, length: int) -> Tensor:
    """P [B, length // 2 + 1] of samples x [B, T], T >= length; frames overlap by three quarters."""
    window = torch.hann_window(length, dtype=x.dtype, device=x.device)
    frames = x.unfold(1, length, max(1, length // 4)) * window  # [B, M, n]
    return torch.fft.rfft(frames).abs().square().mean(dim=1) / window.sum() ** 2


def power_loss(x: Tensor, y: Tensor, length: int) -> Tensor:
    """[B] of samples x, y [B, T]."""
    ours, theirs = mean_power(x, length), mean_power(y, length)
    return (ours - theirs).square().sum(-1) / theirs.square().sum(-1).clamp(min=FLOOR**2)


def spectral_distance(x: Tensor, y: Tensor, length: int) -> Tensor:
    """[B] decibels, of samples x, y [B, T]."""
    ours, theirs = (10 * torch.log10(mean_power(each, length) + FLOOR) for each in (x, y))
    return (ours - theirs).square().mean(-1).sqrt()


def logistic_entropy(log_s: Tensor) -> Tensor:
    """Nats of a logistic distribution: log s + 2."""
    return log_s + 2
