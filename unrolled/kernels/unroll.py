"""Recurrences as one differentiable operation: `Unroll`, and what the kernels that it runs share.

A sequence is one graph node instead of a dozen per tick: the inputs of all ticks are projected in one product, the
ticks run in the native library (or, without it, as a handful of in-place operations of torch), and the weights get
their gradient as one large product. Everything is time-major. A gradient that is to be differentiated again is that of
the reference equations, tick by tick.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor

from unrolled.kernels.again import gradients_again
from unrolled.kernels.native import loaded, serving

Gradients = tuple[Tensor | None, ...]
CHUNK = 1 << 18  # numbers made at once in the backward pass: enough to hide call costs, few enough for the cache
LONG = 1e8  # multiplications from which on several threads are worth starting: about 5 ms
SLOW_FROM = 4096  # B N from which on torch's products are faster than those of SSE (docs/decisions/0031)


class Kernel:
    """One recurrence for `Unroll`: x [T, B, D], h_0 [B, N]. `native` is None where the ticks are torch's."""

    native: ctypes.CDLL | None = None

    def reference(self, x: Tensor, h0: Tensor, *parameters: Any) -> tuple[Tensor, Tensor]:
        """The equations, tick by tick; x and the outputs [B, T, .]."""
        raise NotImplementedError

    def forward(self, x: Tensor, h0: Tensor, *parameters: Any) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """-> outputs [T, B, D'], the last state [B, N], and what the backward pass needs."""
        raise NotImplementedError

    def backward(
        self, x: Tensor, parameters: list[Any], kept: list[Tensor], g: Tensor | None, g_last: Tensor | None, dx: bool
    ) -> Gradients:
        """From the gradients of the outputs and of the last state to those of x, h_0 and the parameters."""
        raise NotImplementedError

    def timed_reference(self, x: Tensor, h0: Tensor, *parameters: Any) -> tuple[Tensor, Tensor]:
        """The same, time-major."""
        y, last = self.reference(x.transpose(0, 1), h0, *parameters)
        return y.transpose(0, 1), last

    def room(self, kind: int, backward: bool, like: Tensor, B: int, N: int) -> tuple[Tensor, int]:
        """What the library works in, and how much that is."""
        assert self.native is not None
        size = self.native.recurrence_room(kind, backward, B, N, like.element_size())
        return like.new_empty(size), size


class Unroll(torch.autograd.Function):
    """The recurrence of a kernel over all ticks as one differentiable operation."""

    @staticmethod
    def forward(ctx: Any, kernel: Kernel, x: Tensor, h0: Tensor, *parameters: Tensor | None) -> tuple[Tensor, Tensor]:
        y, last, kept = kernel.forward(x, h0, *parameters)
        ctx.kernel, ctx.count = kernel, 2 + len(parameters)
        ctx.save_for_backward(x, h0, *parameters, *kept)
        ctx.set_materialize_grads(False)
        return y, last

    @staticmethod
    def backward(ctx: Any, g: Tensor | None, g_last: Tensor | None) -> tuple[Tensor | None, ...]:
        kernel, given, kept = ctx.kernel, ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
        if torch.is_grad_enabled():  # for second derivatives
            return None, *gradients_again(kernel.timed_reference, given, ctx.needs_input_grad[1:], [g, g_last])
        x, _, *parameters = given
        return None, *kernel.backward(x, parameters, kept, g, g_last, ctx.needs_input_grad[1])


def unroll(kernel: Kernel, x: Tensor, h0: Tensor, *parameters: Tensor | None) -> tuple[Tensor, Tensor]:
    """Run a kernel on x [B, T, D] from h_0 [B, N]: -> outputs [B, T, D'], the last state [B, N]."""
    assert parameters[0] is not None
    dtype = parameters[0].dtype
    with torch.autocast(x.device.type, enabled=False):  # in-place ticks need one number type, that of the weights
        x = x.transpose(0, 1).to(dtype).contiguous()  # [T, B, D]
        h0 = h0.to(dtype)
        kernel.native = serving(x, h0, *parameters) if h0.numel() else None
        if kernel.native is not None and loaded().level == "v2" and h0.numel() >= SLOW_FROM:
            kernel.native = None
        y, last = Unroll.apply(kernel, x, h0, *parameters)
    return y.transpose(0, 1), last


def threads(T: int, B: int, N: int, gates: int) -> int:
    """How many threads a recurrence is worth: one, unless it is long and has rows to share."""
    return torch.get_num_threads() if B > 1 and T * B * N * N * gates > LONG else 1


def begun(h0: Tensor, T: int) -> Tensor:
    """Room for all states [T + 1, B, N], with h_0 in front."""
    states = h0.new_empty(T + 1, *h0.shape)
    states[0] = h0
    return states


def incoming(g: Tensor | None, like: Tensor) -> Tensor:
    """The gradient of the outputs [T, B, N], zero where it is missing, units side by side in memory."""
    if g is None:
        return torch.zeros_like(like)
    return g if g.stride(-1) == 1 else g.contiguous()


def at_the_end(g_last: Tensor | None, like: Tensor) -> Tensor:
    """The gradient of the last state [B, N] as memory of its own, in which the library goes back in time."""
    return torch.zeros_like(like) if g_last is None else g_last.clone(memory_format=torch.contiguous_format)


def spans(d: Tensor) -> list[tuple[int, int]]:
    """Spans of ticks from last to first, each about CHUNK numbers of d [T, B, ...]."""
    T = d.shape[0]
    step = max(1, min(T, CHUNK * T // max(1, d.numel())))
    return [(max(0, end - step), end) for end in range(T, 0, -step)]


def product(d: Tensor, x: Tensor) -> Tensor:
    """sum_t d_t^T x_t over all ticks and rows as one product: [T, B, G], [T, B, D] -> [G, D]."""
    return d.flatten(0, 1).t() @ x.flatten(0, 1)
