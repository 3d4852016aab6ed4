"""Recurrences as one differentiable operation: `Unroll` and the kernels that it runs (Elman, both GRUs).

A sequence is one graph node instead of a dozen per tick: the inputs of all ticks are projected in one product, a tick
is a handful of in-place operations on time-major buffers, the backward pass first makes for many ticks at once all that
does not depend on the incoming gradient, and the weights get their gradient as one large product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from unrolled.layers.recurrent.cells import GRU, Activation, BookGRU, Cell, Elman, identity

SLOPES: dict[Activation, Callable[[Tensor], Tensor]] = {  # sigma' as a function of h = sigma(z)
    torch.tanh: lambda h: 1 - h * h,
    torch.relu: lambda h: (h > 0).to(h.dtype),
    torch.sigmoid: lambda h: h * (1 - h),
    identity: torch.ones_like,
}
IN_PLACE: dict[Activation, Callable[[Tensor], Tensor]] = {
    torch.tanh: torch.tanh_, torch.relu: torch.relu_, torch.sigmoid: torch.sigmoid_, identity: identity,
}  # fmt: skip

Gradients = tuple[Tensor | None, ...]
CHUNK = 1 << 18  # numbers made at once in the backward pass: enough to hide call costs, few enough for the cache


class Kernel:
    """One cell kind for `Unroll`. Time-major: x [T, B, D]; states [T + 1, B, N] with h_0 in front."""

    def parameters(self, cell: Cell) -> tuple[Tensor | None, ...]:
        raise NotImplementedError

    def forward(self, x: Tensor, states: Tensor, *parameters: Tensor | None) -> tuple[Tensor, ...]:
        """Fill states[1:] and return what the backward pass needs besides."""
        raise NotImplementedError

    def backward(
        self, x: Tensor, states: Tensor, g: Tensor, dh: Tensor, parameters: list[Any], kept: list[Tensor], dx: bool
    ) -> Gradients:
        """From g = dC/dh_t [T, B, N] (direct part) and dh = dC/dh_T to the gradients of x, h_0 and the parameters."""
        raise NotImplementedError


class Unroll(torch.autograd.Function):
    """The recurrence of a kernel over all ticks as one differentiable operation: -> states [T, B, N], h_T [B, N]."""

    @staticmethod
    def forward(ctx: Any, kernel: Kernel, x: Tensor, h0: Tensor, *parameters: Tensor | None) -> tuple[Tensor, Tensor]:
        states = x.new_empty(x.shape[0] + 1, *h0.shape)  # [T + 1, B, N]
        states[0] = h0
        kept = kernel.forward(x, states, *parameters)
        ctx.kernel, ctx.count = kernel, len(parameters)
        ctx.save_for_backward(x, states, *parameters, *kept)
        ctx.set_materialize_grads(False)
        return states[1:], states[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor | None, g_last: Tensor | None) -> tuple[Tensor | None, ...]:
        x, states, *rest = ctx.saved_tensors
        parameters, kept = rest[: ctx.count], rest[ctx.count :]
        g = torch.zeros_like(states[1:]) if g is None else g.contiguous()  # [T, B, N]
        dh = g[-1] if g_last is None else g[-1] + g_last  # [B, N]
        return None, *ctx.kernel.backward(x, states, g, dh, parameters, kept, ctx.needs_input_grad[1])


def spans(d: Tensor) -> list[tuple[int, int]]:
    """Spans of ticks from last to first, each about CHUNK numbers of d [T, B, ...]."""
    T = d.shape[0]
    step = max(1, min(T, CHUNK * T // d.numel()))
    return [(max(0, end - step), end) for end in range(T, 0, -step)]


def product(d: Tensor, x: Tensor) -> Tensor:
    """sum_t d_t^T x_t over all ticks and rows as one product: [T, B, G], [T, B, D] -> [G, D]."""
    return d.flatten(0, 1).t() @ x.flatten(0, 1)


class ElmanKernel(Kernel):
    """h = sigma(W_hh h' + a), a = W_ih x + b;   back: d = sigma' dh, dh' = g + W_hh^T d."""

    def __init__(self, activation: Activation) -> None:
        self.activate, self.slope = IN_PLACE[activation], SLOPES[activation]

    def parameters(self, cell: Cell) -> tuple[Tensor | None, ...]:
        assert isinstance(cell, Elman)
        return cell.weight_ih, cell.weight_hh, cell.bias

    def forward(self, x: Tensor, states: Tensor, *parameters: Tensor | None) -> tuple[Tensor, ...]:
        W_ih, W_hh, b = cast(tuple[Tensor, Tensor, Tensor | None], parameters)
        activate, W = self.activate, W_hh.t()
        h, *rest = states.unbind(0)
        for a, new in zip(F.linear(x, W_ih, b).unbind(0), rest):
            activate(torch.addmm(a, h, W, out=new))
            h = new
        return ()

    def backward(
        self, x: Tensor, states: Tensor, g: Tensor, dh: Tensor, parameters: list[Any], kept: list[Tensor], dx: bool
    ) -> Gradients:
        W_ih, W_hh, b = parameters
        d = torch.empty_like(g)  # dC/da [T, B, N]
        d_at, g_at = d.unbind(0), g.unbind(0)
        for start, end in spans(d):
            d[start:end] = self.slope(states[start + 1 : end + 1])
            for t in range(end - 1, start - 1, -1):
                d_t = d_at[t].mul_(dh)
                dh = torch.addmm(g_at[t - 1], d_t, W_hh) if t else torch.mm(d_t, W_hh)
        db = None if b is None else d.sum((0, 1))
        return d @ W_ih if dx else None, dh, product(d, x), product(d, states[:-1]), db


class GRUKernel(Kernel):
    """r, z, n and h of `cells.GRU`, with q = W_hn h' + b_hn. Back, all factors of dh that need no dh first:

        n: p = (1 - z)(1 - n^2)   q: p r   r: p q r (1 - r)   z: (h' - n) z (1 - z)

    then tick by tick d = dh * factors, dh' = g + z dh + W_h^T (d_q, d_r, d_z). The input sees (d_r, d_z, d_n).
    """

    def parameters(self, cell: Cell) -> tuple[Tensor | None, ...]:
        assert isinstance(cell, GRU)
        return cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh

    def forward(self, x: Tensor, states: Tensor, *parameters: Tensor | None) -> tuple[Tensor, ...]:
        W_ih, W_hh, b_ih, b_hh = cast(tuple[Tensor, Tensor, Tensor | None, Tensor | None], parameters)
        N = states.shape[-1]
        b_i, b_h = (W_ih.new_zeros(3 * N) if b is None else b for b in (b_ih, b_hh))
        rz = F.linear(x, W_ih[: 2 * N], b_i[: 2 * N] + b_h[: 2 * N])  # [T, B, 2 N]
        n = F.linear(x, W_ih[2 * N :], b_i[2 * N :])  # [T, B, N]
        q = torch.empty_like(n)  # [T, B, N]
        W_rz, W_n, b_n = W_hh[: 2 * N].t(), W_hh[2 * N :].t(), b_h[2 * N :]
        h, *rest = states.unbind(0)
        r_z = zip(rz.unbind(0), rz[..., :N].unbind(0), rz[..., N:].unbind(0))
        for (rz_t, r, z), n_t, q_t, new in zip(r_z, n.unbind(0), q.unbind(0), rest):
            rz_t.addmm_(h, W_rz).sigmoid_()
            torch.addmm(b_n, h, W_n, out=q_t)
            n_t.addcmul_(r, q_t).tanh_()
            torch.lerp(n_t, h, z, out=new)
            h = new
        return rz, n, q

    def backward(
        self, x: Tensor, states: Tensor, g: Tensor, dh: Tensor, parameters: list[Any], kept: list[Tensor], dx: bool
    ) -> Gradients:
        W_ih, W_hh, b_ih, b_hh = parameters
        rz, n, q = kept
        T, B, N = g.shape
        r, z = rz[..., :N], rz[..., N:]
        d = g.new_empty(T, B, 4, N)  # gradients of q, r, z, n: the first three go back in time, the last three to x
        W = torch.cat([W_hh[2 * N :], W_hh[: 2 * N]])  # rows q, r, z [3 N, N]
        d_at, recurrent_at, z_at, g_at = d.unbind(0), d[:, :, :3].flatten(2).unbind(0), z.unbind(0), g.unbind(0)
        for start, end in spans(d):
            self.factors(d[start:end], r[start:end], z[start:end], n[start:end], q[start:end], states[start:end])
            for t in range(end - 1, start - 1, -1):
                d_at[t].mul_(dh.unsqueeze(1))
                dh = torch.addcmul(g_at[t - 1], dh, z_at[t]) if t else dh * z_at[t]
                dh.addmm_(recurrent_at[t], W)
        back, to_x = d[:, :, :3].flatten(2), d[:, :, 1:].flatten(2)  # [T, B, 3 N]
        dW_hh = product(back, states[:-1]).roll(-N, 0)  # rows q, r, z -> r, z, q
        db_ih = None if b_ih is None else to_x.sum((0, 1))
        db_hh = None if b_hh is None else back.sum((0, 1)).roll(-N, 0)
        return to_x @ W_ih if dx else None, dh, product(to_x, x), dW_hh, db_ih, db_hh

    @staticmethod
    def factors(d: Tensor, r: Tensor, z: Tensor, n: Tensor, q: Tensor, h: Tensor) -> None:
        d_q, d_r, d_z, d_n = d.unbind(2)
        keep = 1 - z
        torch.mul(n, n, out=d_n).neg_().add_(1).mul_(keep)
        torch.mul(d_n, r, out=d_q)
        torch.mul(d_q, q, out=d_r).mul_(1 - r)
        torch.sub(h, n, out=d_z).mul_(z).mul_(keep)


class BookGRUKernel(Kernel):
    """r, u, n and h of `cells.BookGRU`, with s = r h'. Back, d_n = dh u (1 - n^2) first, then ds = W_hn^T d_n,

    d_r = ds h' r (1 - r), d_u = dh (n - h') u (1 - u), dh' = g + (1 - u) dh + r ds + W_h^T (d_r, d_u).
    """

    def parameters(self, cell: Cell) -> tuple[Tensor | None, ...]:
        assert isinstance(cell, BookGRU)
        return cell.weight_ih, cell.weight_hh, cell.bias

    def forward(self, x: Tensor, states: Tensor, *parameters: Tensor | None) -> tuple[Tensor, ...]:
        W_ih, W_hh, b = cast(tuple[Tensor, Tensor, Tensor | None], parameters)
        N = states.shape[-1]
        b = W_ih.new_zeros(3 * N) if b is None else b
        ru = F.linear(x, W_ih[: 2 * N], b[: 2 * N])  # [T, B, 2 N]
        n = F.linear(x, W_ih[2 * N :], b[2 * N :])  # [T, B, N]
        s = torch.empty_like(n)  # r h' [T, B, N]
        W_ru, W_n = W_hh[: 2 * N].t(), W_hh[2 * N :].t()
        h, *rest = states.unbind(0)
        r_u = zip(ru.unbind(0), ru[..., :N].unbind(0), ru[..., N:].unbind(0))
        for (ru_t, r, u), n_t, s_t, new in zip(r_u, n.unbind(0), s.unbind(0), rest):
            ru_t.addmm_(h, W_ru).sigmoid_()
            torch.mul(r, h, out=s_t)
            n_t.addmm_(s_t, W_n).tanh_()
            torch.lerp(h, n_t, u, out=new)
            h = new
        return ru, n, s

    def backward(
        self, x: Tensor, states: Tensor, g: Tensor, dh: Tensor, parameters: list[Any], kept: list[Tensor], dx: bool
    ) -> Gradients:
        W_ih, W_hh, b = parameters
        ru, n, s = kept
        T, B, N = g.shape
        W_ru, W_n = W_hh[: 2 * N], W_hh[2 * N :]
        r, u = ru[..., :N], ru[..., N:]
        d = g.new_empty(T, B, 3, N)  # gradients of r, u, n before their activations
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
        d = d.flatten(2)  # [T, B, 3 N]
        dW_hh = torch.cat([product(d[..., : 2 * N], states[:-1]), product(d[..., 2 * N :], s)])
        db = None if b is None else d.sum((0, 1))
        return d @ W_ih if dx else None, dh, product(d, x), dW_hh, db

    @staticmethod
    def factors(d: Tensor, r: Tensor, u: Tensor, n: Tensor, h: Tensor) -> None:
        d_r, d_u, d_n = d.unbind(2)
        torch.mul(n, n, out=d_n).neg_().add_(1).mul_(u)
        torch.sub(n, h, out=d_u).mul_(u).mul_(1 - u)
        torch.mul(h, r, out=d_r).mul_(1 - r)


def unroll(kernel: Kernel, cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
    """Run a cell by its kernel: x [B, T, D], h_0 [B, N] -> states [B, T, N], the last one [B, N]."""
    parameters = kernel.parameters(cell)
    dtype = cast(Tensor, parameters[0]).dtype
    with torch.autocast(x.device.type, enabled=False):  # in-place ticks need one number type, that of the weights
        x = x.transpose(0, 1).to(dtype).contiguous()  # [T, B, D]
        states, last = Unroll.apply(kernel, x, h0.to(dtype), *parameters)
    return states.transpose(0, 1), last
