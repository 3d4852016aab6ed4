"""Metrics: what people read, made from the totals and counts that losses return (summed over batches first).

`total` is a sum of nats without label smoothing; counts are whole numbers. Rounding and units are for who prints them.
"""

from __future__ import annotations

import math

from torch import Tensor

from unrolled.core.errors import DataError
from unrolled.core.tokens import EMPTY


def mean(total: float, count: float) -> float:
    """total / count; nothing counted is an error, not a NaN that travels on."""
    if count <= 0:
        raise DataError("there is nothing to evaluate: the data has no targets; give at least one")
    return float(total) / float(count)


def nats_per_token(total: float, n_tokens: int) -> float:
    """The mean negative log-probability of a token, in nats."""
    return mean(total, n_tokens)


def bits_per_character(total: float, n_chars: int) -> float:
    """The same total in bits, shared among the characters of the text: comparable across tokenizers.

    >>> bits_per_character(8 * math.log(2), n_chars=4)
    2.0
    """
    return mean(total, n_chars) / math.log(2)


def bits_per_byte(total: float, n_bytes: int) -> float:
    """The same total in bits, shared among the bytes of the text: comparable across alphabets too."""
    return mean(total, n_bytes) / math.log(2)


def perplexity(total: float, n_tokens: int) -> float:
    """exp(nats per token): the number of equally likely tokens that would be as surprising; may be infinite.

    >>> round(perplexity(3 * math.log(10), n_tokens=3), 9)
    10.0
    """
    nats = mean(total, n_tokens)
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf


def root_mean_square(total: float, count: int) -> float:
    """The root of a mean squared error, in the unit of the data."""
    return math.sqrt(mean(total, count))


def accuracy(logits: Tensor, targets: Tensor, ignore: int = EMPTY) -> tuple[Tensor, Tensor]:
    """How many targets [B, T] have the highest logit of [B, T, V], and how many there are.

    >>> import torch
    >>> right, count = accuracy(torch.eye(3)[None], torch.tensor([[EMPTY, 1, 1]]))
    >>> right.item(), count.item()
    (1, 2)
    """
    real = targets != ignore
    right = (logits.argmax(dim=-1) == targets) & real
    return right.sum(), real.sum()
