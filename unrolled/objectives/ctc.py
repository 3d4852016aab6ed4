"""Connectionist temporal classification: the loss of a target that is shorter than the source and not aligned with it.

    p(y | x) = sum over pi in B^-1(y) of prod_{t=1}^{S} q_t(pi_t)              q_t = softmax(z_t)
    B: (a, a, -, a, b, b) -> (a, a, b)       runs of one token are merged, then blanks (-) left out

Graves et al. (2006), eqs 2 and 3. The blank is token 0, <empty>, which no target holds, so no output is
added for it. Everything at or behind the end of a row, NaN included, changes neither the value nor any gradient.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from unrolled.core.errors import DataError
from unrolled.core.tokens import EMPTY

BLANK = EMPTY


def frames_needed(targets: Tensor) -> Tensor:
    """The fewest frames [B] that can say targets [B, T] (0 in the padding): a repeated token needs a blank between.

    >>> frames_needed(torch.tensor([[1, 1, 2], [3, 0, 0]])).tolist()
    [4, 1]
    """
    real = targets != BLANK
    repeats = (targets[:, 1:] == targets[:, :-1]) & real[:, 1:]
    return real.sum(1) + repeats.sum(1)


def sequence_losses(logits: Tensor, mask: Tensor, targets: Tensor) -> Tensor:
    """-log p(y | x) of every row in nats: [B].

    z `logits` [B, S, V], mask [B, S] True = real, y `targets` [B, T] without <start> and <stop>, 0 in the padding.
    """
    lengths, needed = mask.sum(1), frames_needed(targets)
    if bool((lengths < needed).any()):
        row = int((lengths < needed).nonzero()[0])
        raise DataError(
            f"row {row} of the batch has {int(lengths[row])} frames, but its target needs {int(needed[row])} "
            "for CTC: use more frames (a smaller hop or stride), or shorter targets"
        )
    z = logits.masked_fill(~mask.unsqueeze(-1), 0.0)  # before the softmax: 0 * NaN in its gradient would be NaN
    log_q = torch.log_softmax(z, dim=-1, dtype=torch.promote_types(z.dtype, torch.float32))  # [B, S, V]
    n_tokens = (targets != BLANK).sum(1)
    return F.ctc_loss(log_q.transpose(0, 1), targets, lengths, n_tokens, blank=BLANK, reduction="none")


def ctc_loss(logits: Tensor, mask: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """`sequence_losses` summed, and how many tokens the targets have.

    >>> total, count = ctc_loss(torch.zeros(1, 2, 3), torch.ones(1, 2, dtype=torch.bool), torch.tensor([[2]]))
    >>> round(total.exp().item(), 4), count.item()  # 3 of 9 paths say it: (2, 2), (2, -), (-, 2)
    (3.0, 1)
    """
    return sequence_losses(logits, mask, targets).sum(), (targets != BLANK).sum()
