"""The gated recurrent unit whose reset gate acts BEFORE the product (book eqs 7.18-7.19) over all ticks, s = r h':

    r, u = sigmoid(W_h. h' + W_i. x + b)      n = tanh(W_hn s + W_in x + b_n)      h = (1 - u) h' + u n

Back: d_n = dh u (1 - n^2), ds = W_hn^T d_n, d_r = ds h' r (1 - r), d_u = dh (n - h') u (1 - u) and
dh' = g + (1 - u) dh + r ds + W_h^T (d_r, d_u).
"""

from __future__ import annotations

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

KIND = 1  # native/api.h


def book_gru_reference(
    x: Tensor, h0: Tensor, W_ih: Tensor, W_hh: Tensor, b: Tensor | None
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The equations, tick by tick."""
    N = h0.shape[-1]
    h, states = h0, []
    for x_t in x.unbind(1):
        i_r, i_u, i_n = F.linear(x_t, W_ih, b).chunk(3, -1)
        h_r, h_u = F.linear(h, W_hh[: 2 * N]).chunk(2, -1)
        r, u = (h_r + i_r).sigmoid(), (h_u + i_u).sigmoid()
        n = (F.linear(r * h, W_hh[2 * N :]) + i_n).tanh()
        h = (1 - u) * h + u * n
        states.append(h)
    return torch.stack(states, 1), h


def book_gru(x: Tensor, h0: Tensor, W_ih: Tensor, W_hh: Tensor, b: Tensor | None) -> tuple[Tensor, Tensor]:
    """x [B, T, D], h_0 [B, N] -> states [B, T, N], the last one [B, N]; rows of the weights in the order r, u, n."""
    return unroll(BookGRUKernel(), x, h0, W_ih, W_hh, b)


class BookGRUKernel(Kernel):
    def reference(self, x: Tensor, h0: Tensor, *parameters: Any) -> tuple[Tensor, Tensor]:
        return book_gru_reference(x, h0, *parameters)

    def forward(self, x: Tensor, h0: Tensor, *parameters: Any) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        W_ih, W_hh, b = parameters
        (T, B, _), N = x.shape, h0.shape[-1]
        a, s, states = F.linear(x, W_ih, b), x.new_empty(T, B, N), begun(h0, T)
        if self.native is not None:
            room = self.room(KIND, False, a, B, N)
            W = W_hh.contiguous()
            call(self.native, "book_gru_forward", T, B, N, a, s, states, W, *room, threads(T, B, N, 3))
        else:
            self.ahead(a, s, states, W_hh)
        return states[1:], states[-1].clone(), (states, a, s)  # a holds r, u, n

    @staticmethod
    def ahead(a: Tensor, s: Tensor, states: Tensor, W_hh: Tensor) -> None:
        N = s.shape[-1]
        W_ru, W_n = W_hh[: 2 * N].t(), W_hh[2 * N :].t()
        h, *rest = states.unbind(0)
        r_u = zip(a[..., : 2 * N].unbind(0), a[..., :N].unbind(0), a[..., N : 2 * N].unbind(0))
        for (ru_t, r, u), n_t, s_t, new in zip(r_u, a[..., 2 * N :].unbind(0), s.unbind(0), rest):
            ru_t.addmm_(h, W_ru).sigmoid_()
            torch.mul(r, h, out=s_t)
            n_t.addmm_(s_t, W_n).tanh_()
            torch.lerp(h, n_t, u, out=new)
            h = new

    def backward(
        self, x: Tensor, parameters: list[Any], kept: list[Tensor], g: Tensor | None, g_last: Tensor | None, dx: bool
    ) -> Gradients:
        W_ih, W_hh, b = parameters
        states, a, s = kept
        g = incoming(g, states[1:])
        T, B, N = g.shape
        d = x.new_empty(T, B, 3, N)  # gradients of r, u, n before their activations
        if self.native is not None:
            dh, room = at_the_end(g_last, states[0]), self.room(KIND, True, d, B, N)
            call(self.native, "book_gru_backward", T, B, N, a, states, W_hh.contiguous(), g, *g.stride()[:2], dh, d,
                 *room, threads(T, B, N, 3))  # fmt: skip
        else:
            dh = self.back(a, states, W_hh, g, g[-1] if g_last is None else g[-1] + g_last, d)
        d = d.flatten(2)  # [T, B, 3 N]
        dW_hh = torch.cat([product(d[..., : 2 * N], states[:-1]), product(d[..., 2 * N :], s)])
        db = None if b is None else d.sum((0, 1))
        return d @ W_ih if dx else None, dh, product(d, x), dW_hh, db

    def back(self, a: Tensor, states: Tensor, W_hh: Tensor, g: Tensor, dh: Tensor, d: Tensor) -> Tensor:
        N = states.shape[-1]
        W_ru, W_n = W_hh[: 2 * N], W_hh[2 * N :]
        r, u, n = a.chunk(3, -1)
        keep_at, r_at, g_at = (1 - u).unbind(0), r.unbind(0), g.unbind(0)
        un_at, ru_at = d[:, :, 1:].unbind(0), d[:, :, :2].flatten(2).unbind(0)
        d_r_at, d_n_at = d[:, :, 0].unbind(0), d[:, :, 2].unbind(0)
        for start, end in spans(d):
            self.factors(d[start:end], r[start:end], u[start:end], n[start:end], states[start:end])
            for t in range(end - 1, start - 1, -1):
                un_at[t].mul_(dh.unsqueeze(1))
                ds = torch.mm(d_n_at[t], W_n)
                d_r_at[t].mul_(ds)
                dh = torch.addcmul(g_at[t - 1], dh, keep_at[t]) if t else dh * keep_at[t]
                dh.addcmul_(ds, r_at[t]).addmm_(ru_at[t], W_ru)
        return dh

    @staticmethod
    def factors(d: Tensor, r: Tensor, u: Tensor, n: Tensor, h: Tensor) -> None:
        d_r, d_u, d_n = d.unbind(2)
        torch.mul(n, n, out=d_n).neg_().add_(1).mul_(u)
        torch.sub(n, h, out=d_u).mul_(u).mul_(1 - u)
        torch.mul(h, r, out=d_r).mul_(1 - r)
