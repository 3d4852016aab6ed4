"""Second derivatives of a kernel: where the gradient is to be differentiated, the reference equations give it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def gradients_again(
    reference: Callable[..., Any], given: Sequence[Tensor | None], wanted: Sequence[bool], g: Sequence[Tensor | None]
) -> tuple[Tensor | None, ...]:
    """The gradients of reference(*given) with respect to what is wanted, from the gradients g of its results.

    They can be differentiated further, by `given` and by g. It costs what the equations cost, tick by tick.
    """
    own = [
        None if x is None else x.view_as(x) for x in given
    ]  # one may be a function of another: each its own variable
    out = reference(*own)
    results = [out] if isinstance(out, Tensor) else [*out]
    pairs = [(y, g_y) for y, g_y in zip(results, g, strict=True) if g_y is not None]
    asked = [x for x, w in zip(own, wanted, strict=True) if x is not None and w]
    found = iter(
        torch.autograd.grad(
            [y for y, _ in pairs], asked, [g_y for _, g_y in pairs], create_graph=True, allow_unused=True
        )
    )
    return tuple(next(found) if x is not None and w else None for x, w in zip(own, wanted, strict=True))
