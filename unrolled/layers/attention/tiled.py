"""Attention in linear memory by tiles and an online softmax: FlashAttention's algorithm, to be read.

The scores of one tile of queries and one tile of keys are made, used and thrown away; what is kept per query is

    m = max_j s_j        l = sum_j exp(s_j - m)        o = sum_j exp(s_j - m) v_j,        u = o / l

and when a new tile raises the maximum from m to m', l and o are multiplied by exp(m - m'). Backward makes each tile
again from the logarithm of the denominator L = m + log l:

    p_ij = exp(s_ij - L_i)      dv_j = sum_i p_ij du_i      ds_ij = p_ij (du_i . v_j - du_i . u_i)

Dao, Fu, Ermon, Rudra & Re (2022), algorithms 1 and 4. Tiles that nobody may look into are skipped. The fast layers use
torch's scaled_dot_product_attention, which is the same algorithm in C++; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

TILE = 256


class Span(NamedTuple):
    """Which keys a query may see: query i stands at key i + ahead and sees `window` keys back, and `mask` [B, S]."""

    causal: bool
    ahead: int
    window: int | None
    mask: Tensor | None

    def keys(self, i: slice, S: int) -> tuple[int, int]:
        """The first and the last but one key that any query of this tile sees."""
        last = min(S, i.stop + self.ahead) if self.causal else S
        first = max(0, i.start + self.ahead - self.window + 1) if self.causal and self.window is not None else 0
        return first, last

    def forbidden(self, i: slice, j: slice, device: torch.device) -> Tensor | None:
        """True where a query must not look, broadcast over [B, H, tile, tile]; None where it may look everywhere."""
        result: Tensor | None = None
        if self.causal:
            t = torch.arange(i.start, i.stop, device=device)[:, None] + self.ahead  # [tile, 1]
            tau = torch.arange(j.start, j.stop, device=device)  # [tile]
            if j.stop - 1 > i.start + self.ahead:
                result = tau > t
            if self.window is not None and j.start <= i.stop - 1 + self.ahead - self.window:
                past = tau <= t - self.window
                result = past if result is None else result | past
        if self.mask is not None:
            padding = ~self.mask[:, None, None, j]  # [B, 1, 1, tile]
            result = padding if result is None else result | padding
        return result


def tiles(first: int, last: int, tile: int) -> Iterator[slice]:
    for start in range(first, last, tile):
        yield slice(start, min(start + tile, last))


def scores(q: Tensor, k: Tensor, scale: float, span: Span, i: slice, j: slice) -> Tensor:
    """s_ij of one tile [B, H, tile, tile]; -inf where looking is not allowed, eq. (7.27) on scores."""
    s = scale * q[:, :, i] @ k[:, :, j].mT
    forbidden = span.forbidden(i, j, q.device)
    return s if forbidden is None else s.masked_fill(forbidden, -torch.inf)


def one_tile(q: Tensor, k: Tensor, v: Tensor, scale: float, span: Span, i: slice, tile: int) -> tuple[Tensor, Tensor]:
    """u [B, H, tile, m_v] of one tile of queries and the logarithm L [B, H, tile, 1] of its denominators."""
    m = q.new_full((*q.shape[:2], i.stop - i.start, 1), -torch.inf)
    l = torch.zeros_like(m)  # noqa: E741  # the letter of the paper
    o = q.new_zeros(*m.shape[:3], v.shape[-1])
    for j in tiles(*span.keys(i, k.shape[2]), tile):
        s = scores(q, k, scale, span, i, j)
        higher = torch.maximum(m, s.amax(-1, keepdim=True))
        base = higher.masked_fill(higher == -torch.inf, 0.0)  # a query that has seen no key yet
        p = torch.exp(s - base)
        shrink = torch.exp(m - base)
        l = shrink * l + p.sum(-1, keepdim=True)  # noqa: E741
        o = shrink * o + p @ v[:, :, j]
        m = higher
    nobody = l == 0  # a query that sees no key at all gets zero
    L = torch.where(nobody, torch.inf, m + l.log())
    return o / l.masked_fill(nobody, 1.0), L


class Tiled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, scale: float, span: Span, tile: int) -> Tensor:
        u = q.new_empty(*q.shape[:3], v.shape[-1])  # [B, H, T, m_v]
        L = q.new_empty(*q.shape[:3], 1)  # [B, H, T, 1]
        for i in tiles(0, q.shape[2], tile):
            u[:, :, i], L[:, :, i] = one_tile(q, k, v, scale, span, i, tile)
        ctx.save_for_backward(q, k, v, u, L)
        ctx.scale, ctx.span, ctx.tile = scale, span, tile
        return u

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (du,) = gradients
        q, k, v, u, L = ctx.saved_tensors
        dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        dot = (du * u).sum(-1, keepdim=True)  # [B, H, T, 1]
        for i in tiles(0, q.shape[2], ctx.tile):
            first, last = ctx.span.keys(i, k.shape[2])
            for j in tiles(first, last, ctx.tile):
                p = torch.exp(scores(q, k, ctx.scale, ctx.span, i, j) - L[:, :, i])
                dv[:, :, j] += p.mT @ du[:, :, i]
                ds = p * (du[:, :, i] @ v[:, :, j].mT - dot[:, :, i])
                dq[:, :, i] += ctx.scale * ds @ k[:, :, j]
                dk[:, :, j] += ctx.scale * ds.mT @ q[:, :, i]
        return dq, dk, dv, None, None, None


def tiled_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float | None = None,
    causal: bool = False,
    window: int | None = None,
    ahead: int = 0,
    mask: Tensor | None = None,
    tile: int = TILE,
) -> Tensor:
    """softmax(scale q k^T) v for q [B, H, T, m], k [B, H, S, m], v [B, H, S, m_v] in memory linear in T and S.

    causal: query i sees keys up to i + ahead, with `window` only the last so many; mask [B, S] is True at real keys;
    scale is 1 / sqrt(m) unless given. A query that may see no key gets zero. Once differentiable.

    >>> q = torch.randn(1, 2, 5, 4)
    >>> bool(torch.allclose(tiled_attention(q, q, q, causal=True, tile=2)[:, :, 0], q[:, :, 0]))
    True
    """
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    result: Tensor = Tiled.apply(q, k, v, scale, Span(causal, ahead, window, mask), tile)
    return result
