"""How a matrix is kept: in the fewest bits that hold its numbers exactly, so that a tick reads less memory.

    bf16   the upper half of a float
    int8   w_jk = s_j q_jk, q whole in -127 .. 127; s_j = max_k |w_jk| / 127 of 16 binary digits, so that s q is exact

Numbers as they come from training need all of a float. `rounded` gives those nearest to them that need less; with
these in the place of the weights the model is the same everywhere, by torch and natively, at any level.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from unrolled.engine.operations import Form

FORMS = {"bf16": Form.BF16, "int8": Form.INT8}  # what weights can be rounded to
MOST = 127
DIGITS = -256  # keeps 16 binary digits of a float
LEAST = 2.0**-100  # of a scale: products with it have all their digits
FIRST = 4  # rows that are looked at before all are


class Held(NamedTuple):
    """A matrix [n, K] in a form."""

    form: Form
    numbers: Tensor
    scales: Tensor | None = None  # [n]


def rounded(W: Tensor, form: Form) -> Tensor:
    """The nearest numbers to those of W [n, ..] that a form holds; float32."""
    if form == Form.BF16:
        return W.bfloat16().float()
    rows = W.flatten(1)
    s = _of_few_digits(rows.abs().amax(1, keepdim=True) / MOST).clamp(min=LEAST)
    return (s * (rows / s).round().clamp(-MOST, MOST)).view(W.shape)


def held(W: Tensor) -> Held:
    """A matrix [n, K], n and K >= 1, in the smallest form that holds it exactly."""
    for of in (_as_int8, _as_bf16) if W.dtype == torch.float32 else ():
        if of(W[:FIRST]) is not None and (found := of(W)) is not None:
            return found
    return Held(Form.FULL, W)


def _as_int8(W: Tensor) -> Held | None:
    s = (W.abs().amax(1, keepdim=True) / MOST).clamp(min=LEAST)
    q = (W / s).round()
    fits = bool((_of_few_digits(s) == s).all()) and bool((s * q == W).all())
    return Held(Form.INT8, q.to(torch.int8), s[:, 0].contiguous()) if fits else None


def _as_bf16(W: Tensor) -> Held | None:
    half = W.bfloat16()
    return Held(Form.BF16, half.view(torch.int16)) if bool((half.float() == W).all()) else None


def _of_few_digits(s: Tensor) -> Tensor:
    return ((s.view(torch.int32) + 128) & DIGITS).view(torch.float32)
