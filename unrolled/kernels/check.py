"""Check that a kernel is its reference: the same outputs, and the same gradients of all that it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def check_kernel(
    kernel: Callable[..., Any], reference: Callable[..., Any], *given: Tensor | None, tolerance: float | None = None
) -> None:
    """Raise an AssertionError where kernel(*given) and reference(*given), or their gradients, differ.

    Differences are relative to the largest number of each result. The tolerance is 1e-4 in float32 and 1e-9 in float64
    unless one is given. Outputs are weighed differently, so that no error can cancel another.

    >>> check_kernel(lambda x: 2 * x, lambda x: x + x, torch.randn(3))
    """
    dtype = next(g.dtype for g in given if g is not None)
    limit = tolerance or (1e-9 if dtype == torch.float64 else 1e-4)
    ours, theirs = _results(kernel, given), _results(reference, given)
    for place, (mine, true) in enumerate(zip(ours, theirs, strict=True)):
        assert mine.shape == true.shape, f"result {place}: {list(mine.shape)}, expected {list(true.shape)}"
        error = float((mine - true).abs().max() / true.abs().max().clamp(min=1e-3)) if true.numel() else 0.0
        assert error <= limit, f"result {place} differs by {error:.1e} of its largest number"  # so does NaN


def _results(function: Callable[..., Any], given: tuple[Tensor | None, ...]) -> list[Tensor]:
    leaves = [None if g is None else g.detach().clone().requires_grad_() for g in given]
    out = function(*leaves)
    outputs = [out] if isinstance(out, Tensor) else [*out]
    loss = sum((y * torch.arange(y.numel(), dtype=y.dtype).view_as(y).sin()).sum() for y in outputs)
    wanted = [leaf for leaf in leaves if leaf is not None]
    gradients = torch.autograd.grad(loss, wanted, allow_unused=True, materialize_grads=True)  # type: ignore[arg-type]
    return [*(y.detach() for y in outputs), *gradients]
