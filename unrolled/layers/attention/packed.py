"""Weights in the order in which a product with few rows reads them: beam search, where the head is most of the work.

A product of 5 rows with a table of 8192 x 256 spends most of its time on bringing the table into that order, which is
the same at every tick. `with packed_weights():` the order is made once, at the first use, and kept until the end of the
block; nobody may change weights meanwhile. Elsewhere, and where oneDNN is not there, `linear` is torch's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor
from torch.nn import functional as F

LEAST = 1 << 18  # entries of a table for which it is worth it
ROWS = 32  # the number of rows for which the order is chosen; it serves fewer and more

Packs = dict[tuple[int, torch.Size, tuple[int, ...]], tuple[Tensor, Tensor | None]]

_packs: ContextVar[Packs | None] = ContextVar("unrolled_packs", default=None)


@contextmanager
def packed_weights() -> Iterator[None]:
    """A block in which weights stay as they are, so that they may be kept in another order beside."""
    token = _packs.set({} if (outer := _packs.get()) is None else outer)
    try:
        yield
    finally:
        _packs.reset(token)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, then: str = "none") -> Tensor:
    """S(x W^T + b) for x [..., D], W [D', D]; `then` is the S: none or relu."""
    packs = _packs.get()
    if packs is not None and _serves(x, weight):
        key = (weight.data_ptr(), weight.shape, weight.stride())
        if key not in packs:
            packs[key] = weight, _pack(weight)  # the weight too, so that its memory is nobody else's
        pack = packs[key][1]
        if pack is not None:
            y: Tensor = torch.ops.mkldnn._linear_pointwise.default(x, pack, bias, then, [], "")
            return y
    y = F.linear(x, weight, bias)
    return y.relu_() if then == "relu" else y


def _serves(x: Tensor, weight: Tensor) -> bool:
    """Several rows, and the fewer the smaller the table: with many its order costs little."""
    size = weight.numel()
    return (
        size >= LEAST
        and x.size(-1) == weight.size(-1)
        and x.size(-1) < x.numel() <= x.size(-1) * (size >> 14)
        and x.is_cpu
        and x.dtype == weight.dtype == torch.float32
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
    )


def _pack(weight: Tensor) -> Tensor | None:
    try:
        pack: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), ROWS)
    except (RuntimeError, AttributeError, NotImplementedError):  # built without oneDNN
        return None
    return pack
