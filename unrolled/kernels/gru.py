"""The gated recurrent unit as in torch.nn.GRU over all ticks (after Cho et al. 2014), q = W_hn h' + b_hn:

    r, z = sigmoid(W_i. x + b_i. + W_h. h' + b_h.)      n = tanh(W_in x + b_in + r q)      h = (1 - z) n + z h'

Back, all factors of dh that need no dh: n: p = (1 - z)(1 - n^2); q: p r; r: p q r (1 - r); z: (h' - n) z (1 - z). Then
tick by tick d = dh * factors and dh' = g + z dh + W_h^T (d_q, d_r, d_z). The input sees (d_r, d_z, d_n).
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

KIND = 0  # native/api.h


def gru_reference(
    x: Tensor, h0: Tensor, W_ih: Tensor, W_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The equations, tick by tick."""
    h, states = h0, []
    for x_t in x.unbind(1):
        i_r, i_z, i_n = F.linear(x_t, W_ih, b_ih).chunk(3, -1)
        h_r, h_z, q = F.linear(h, W_hh, b_hh).chunk(3, -1)
        r, z = (i_r + h_r).sigmoid(), (i_z + h_z).sigmoid()
        n = (i_n + r * q).tanh()
        h = (1 - z) * n + z * h
        states.append(h)
    return torch.stack(states, 1), h


def gru(
    x: Tensor, h0: Tensor, W_ih: Tensor, W_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> tuple[Tensor, Tensor]:
    """x [B, T, D], h_0 [B, N] -> states [B, T, N], the last one [B, N]; weights and their order as in torch.nn.GRU."""
    return unroll(GRUKernel(), x, h0, W_ih, W_hh, b_ih, b_hh)


class GRUKernel(Kernel):
    def reference(self, x: Tensor, h0: Tensor, *parameters: Any) -> tuple[Tensor, Tensor]:
        return gru_reference(x, h0, *parameters)

    def forward(self, x: Tensor, h0: Tensor, *parameters: Any) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        W_ih, W_hh, b_ih, b_hh = parameters
        (T, B, _), N = x.shape, h0.shape[-1]
        b_i, b_h = (W_ih.new_zeros(3 * N) if b is None else b for b in (b_ih, b_hh))
        bias, b_n = torch.cat([b_i[: 2 * N] + b_h[: 2 * N], b_i[2 * N :]]), b_h[2 * N :].contiguous()  # [3 N], [N]
        a, q, states = F.linear(x, W_ih, bias), x.new_empty(T, B, N), begun(h0, T)
        if self.native is not None:
            room = self.room(KIND, False, a, B, N)
            W = W_hh.contiguous()
            call(self.native, "gru_forward", T, B, N, a, q, states, W, b_n, *room, threads(T, B, N, 3))
        else:
            self.ahead(a, q, states, W_hh, b_n)
        return states[1:], states[-1].clone(), (states, a, q)  # a holds r, z, n

    @staticmethod
    def ahead(a: Tensor, q: Tensor, states: Tensor, W_hh: Tensor, b_n: Tensor) -> None:
        N = q.shape[-1]
        W_rz, W_n = W_hh[: 2 * N].t(), W_hh[2 * N :].t()
        h, *rest = states.unbind(0)
        r_z = zip(a[..., : 2 * N].unbind(0), a[..., :N].unbind(0), a[..., N : 2 * N].unbind(0))
        for (rz_t, r, z), n_t, q_t, new in zip(r_z, a[..., 2 * N :].unbind(0), q.unbind(0), rest):
            rz_t.addmm_(h, W_rz).sigmoid_()
            torch.addmm(b_n, h, W_n, out=q_t)
            n_t.addcmul_(r, q_t).tanh_()
            torch.lerp(n_t, h, z, out=new)
            h = new

    def backward(
        self, x: Tensor, parameters: list[Any], kept: list[Tensor], g: Tensor | None, g_last: Tensor | None, dx: bool
    ) -> Gradients:
        W_ih, W_hh, b_ih, b_hh = parameters
        states, a, q = kept
        g = incoming(g, states[1:])
        T, B, N = g.shape
        d = x.new_empty(T, B, 4, N)  # gradients of q, r, z, n: the first three go back in time, the last three to x
        if self.native is not None:
            dh, room = at_the_end(g_last, states[0]), self.room(KIND, True, d, B, N)
            call(self.native, "gru_backward", T, B, N, a, q, states, W_hh.contiguous(), g, *g.stride()[:2], dh, d,
                 *room, threads(T, B, N, 3))  # fmt: skip
        else:
            dh = self.back(a, q, states, W_hh, g, g[-1] if g_last is None else g[-1] + g_last, d)
        back, to_x = d[:, :, :3].flatten(2), d[:, :, 1:].flatten(2)  # [T, B, 3 N]
        dW_hh = product(back, states[:-1]).roll(-N, 0)  # rows q, r, z -> r, z, q
        db_ih = None if b_ih is None else to_x.sum((0, 1))
        db_hh = None if b_hh is None else back.sum((0, 1)).roll(-N, 0)
        return to_x @ W_ih if dx else None, dh, product(to_x, x), dW_hh, db_ih, db_hh

    def back(
        self, a: Tensor, q: Tensor, states: Tensor, W_hh: Tensor, g: Tensor, dh: Tensor, d: Tensor
    ) -> Tensor:  # fmt: skip
        N = q.shape[-1]
        r, z, n = a.chunk(3, -1)
        W = torch.cat([W_hh[2 * N :], W_hh[: 2 * N]])  # rows q, r, z [3 N, N]
        d_at, recurrent_at, z_at, g_at = d.unbind(0), d[:, :, :3].flatten(2).unbind(0), z.unbind(0), g.unbind(0)
        for start, end in spans(d):
            self.factors(d[start:end], r[start:end], z[start:end], n[start:end], q[start:end], states[start:end])
            for t in range(end - 1, start - 1, -1):
                d_at[t].mul_(dh.unsqueeze(1))
                dh = torch.addcmul(g_at[t - 1], dh, z_at[t]) if t else dh * z_at[t]
                dh.addmm_(recurrent_at[t], W)
        return dh

    @staticmethod
    def factors(d: Tensor, r: Tensor, z: Tensor, n: Tensor, q: Tensor, h: Tensor) -> None:
        d_q, d_r, d_z, d_n = d.unbind(2)
        keep = 1 - z
        torch.mul(n, n, out=d_n).neg_().add_(1).mul_(keep)
        torch.mul(d_n, r, out=d_q)
        torch.mul(d_q, q, out=d_r).mul_(1 - r)
        torch.sub(h, n, out=d_z).mul_(z).mul_(keep)
