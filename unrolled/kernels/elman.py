"""h = sigma(W_hh h' + a), a = W_ih x + b (Elman 1990) over all ticks; back: d = sigma' dh, dh' = g + W_hh^T d."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from unrolled.kernels.native import call
from unrolled.kernels.unroll import (
    Gradients,
    Kernel,
    at_the_end,
    begun,
    incoming,
    product,
    spans,
    threads,
    unroll,
)

KIND = 3  # native/api.h
ACTIVATIONS = ["tanh", "relu", "sigmoid", "identity"]  # in the order of native/api.h
SLOPES: dict[str, Callable[[Tensor], Tensor]] = {  # sigma' as a function of h = sigma(z)
    "tanh": lambda h: 1 - h * h,
    "relu": lambda h: (h > 0).to(h.dtype),
    "sigmoid": lambda h: h * (1 - h),
    "identity": torch.ones_like,
}
IN_PLACE: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh_, "relu": torch.relu_, "sigmoid": torch.sigmoid_, "identity": lambda z: z,
}  # fmt: skip


def elman_reference(
    x: Tensor, h0: Tensor, W_ih: Tensor, W_hh: Tensor, b: Tensor | None, activation: str = "tanh"
) -> tuple[Tensor, Tensor]:
    """The equation, tick by tick."""
    sigma = {"tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid, "identity": lambda z: z}[activation]
    h, states = h0, []
    for x_t in x.unbind(1):
        h = sigma(F.linear(h, W_hh) + F.linear(x_t, W_ih, b))
        states.append(h)
    return torch.stack(states, 1), h


def elman(
    x: Tensor, h0: Tensor, W_ih: Tensor, W_hh: Tensor, b: Tensor | None, activation: str = "tanh"
) -> tuple[Tensor, Tensor]:
    """x [B, T, D], h_0 [B, N] -> states [B, T, N], the last one [B, N]; activation: tanh, relu, sigmoid, identity."""
    return unroll(ElmanKernel(activation), x, h0, W_ih, W_hh, b)


class ElmanKernel(Kernel):
    def __init__(self, activation: str) -> None:
        self.activation, self.number = activation, ACTIVATIONS.index(activation)
        self.activate, self.slope = IN_PLACE[activation], SLOPES[activation]

    def reference(self, x: Tensor, h0: Tensor, *parameters: Any) -> tuple[Tensor, Tensor]:
        W_ih, W_hh, b = parameters
        return elman_reference(x, h0, W_ih, W_hh, b, self.activation)

    def forward(self, x: Tensor, h0: Tensor, *parameters: Any) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        W_ih, W_hh, b = parameters
        (T, B, _), N = x.shape, h0.shape[-1]
        a, states = F.linear(x, W_ih, b), begun(h0, T)  # [T, B, N], [T + 1, B, N]
        if self.native is not None:
            room = self.room(KIND, False, a, B, N)
            W = W_hh.contiguous()
            call(self.native, "elman_forward", T, B, N, self.number, a, states, W, *room, threads(T, B, N, 1))
            return states[1:], states[-1].clone(), (states,)
        activate, W = self.activate, W_hh.t()
        h, *rest = states.unbind(0)
        for a_t, new in zip(a.unbind(0), rest):
            activate(torch.addmm(a_t, h, W, out=new))
            h = new
        return states[1:], states[-1].clone(), (states,)

    def backward(
        self, x: Tensor, parameters: list[Any], kept: list[Tensor], g: Tensor | None, g_last: Tensor | None, dx: bool
    ) -> Gradients:
        W_ih, W_hh, b = parameters
        states = kept[0]
        g = incoming(g, states[1:])
        T, B, N = g.shape
        d = x.new_empty(T, B, N)  # dC/da
        if self.native is not None:
            dh, room = at_the_end(g_last, states[0]), self.room(KIND, True, d, B, N)
            call(self.native, "elman_backward", T, B, N, self.number, states, W_hh.contiguous(), g, *g.stride()[:2], dh,
                 d, *room, threads(T, B, N, 1))  # fmt: skip
        else:
            dh = self.back(states, W_hh, g, g[-1] if g_last is None else g[-1] + g_last, d)
        db = None if b is None else d.sum((0, 1))
        return d @ W_ih if dx else None, dh, product(d, x), product(d, states[:-1]), db

    def back(self, states: Tensor, W_hh: Tensor, g: Tensor, dh: Tensor, d: Tensor) -> Tensor:
        d_at, g_at = d.unbind(0), g.unbind(0)
        for start, end in spans(d):
            d[start:end] = self.slope(states[start + 1 : end + 1])
            for t in range(end - 1, start - 1, -1):
                d_t = d_at[t].mul_(dh)
                dh = torch.addmm(g_at[t - 1], d_t, W_hh) if t else torch.mm(d_t, W_hh)
        return dh
