"""Losses of answers: weights for rare classes, and several classes at once. A loss returns (total, count).

Labels are whole numbers from 0; -1 means that there is no label (padding, unknown).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

NO_LABEL = -1


def balanced_weights(counts: Tensor, power: float = 1.0) -> Tensor:
    """Class weights w_c ~ 1 / n_c^power from the counts n [C] of the training labels, with mean 1 over examples.

    power 1 makes all classes count alike, 0 all examples; a class without examples gets 0.

    >>> balanced_weights(torch.tensor([30, 10, 0])).tolist()
    [0.6666666865348816, 2.0, 0.0]
    """
    n = counts.to(torch.get_default_dtype())
    w = torch.where(n > 0, n.clamp_min(1) ** -power, 0.0)
    return w * (n.sum() / (w * n).sum().clamp_min(torch.finfo(n.dtype).tiny))


def multilabel_cross_entropy(
    logits: Tensor, targets: Tensor, positive_weights: Tensor | None = None, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Cross entropy of independent yes-or-no answers v [B, C] under logits z [B, C], in nats, and how many there are.

    H = -sum_c [w_c v_c log p_c + (1 - v_c) log(1 - p_c)],  p_c = sigmoid(z_c)

    w `positive_weights` [C], for labels that are rarely present. The mask [B] or [B, C] says which answers are real.

    >>> total, count = multilabel_cross_entropy(torch.zeros(2, 3), torch.ones(2, 3), mask=torch.tensor([True, False]))
    >>> round(total.item() / count.item(), 4), count.item()  # log 2 nats each
    (0.6931, 3)
    """
    if logits.shape != targets.shape:
        raise ValueError(f"logits {tuple(logits.shape)} and targets {tuple(targets.shape)} must have the same shape")
    count = torch.tensor(logits.numel(), device=logits.device)
    v = targets.to(torch.promote_types(logits.dtype, torch.float32))
    z = logits.to(v.dtype)
    if mask is not None:
        real = mask.view(*mask.shape, *[1] * (z.dim() - mask.dim())).expand_as(z)
        z, v, count = z.masked_fill(~real, 0.0), v.masked_fill(~real, 0.0), real.sum()
    w = None if positive_weights is None else positive_weights.to(z)
    losses = F.binary_cross_entropy_with_logits(z, v, pos_weight=w, reduction="none")  # [B, C]
    return (losses if mask is None else losses.masked_fill(~real, 0.0)).sum(), count
