"""Attention: a weighted average of values, by how well their keys fit a query.

    alpha^(t) = softmax over tau of s(z_q^(t), z_k^(tau))        u^(t) = sum_tau alpha_tau^(t) v^(tau)

Liquet, Moka & Nazarathy (2024), eqs (7.20)-(7.21). Masking (7.27) acts on the scores: what may not be seen gets -inf
there, so the denominators of (7.23)-(7.25) run over all admitted tau and over no others.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.core.causal import Causal, Encoder, tick_multiply_adds
from unrolled.core.errors import UsageError
from unrolled.core.state import Fixed, State
from unrolled.core.trace import note, tracing
from unrolled.layers.attention.key_value import (
    KeyValue,
    apart,
    begun,
    common_length,
    full_ring,
    gathered,
    in_order,
    slot_positions,
    written,
    written_by_row,
)  # fmt: skip
from unrolled.layers.attention.position import Rotary
from unrolled.layers.attention.scores import Score, score_named

BLOCK = 1 << 20  # entries of one mask: longer chunks are cut into blocks of queries


# ---- the mechanism


def attention_weights(score: Score, q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """alpha [..., T, S] of eq. (7.20); mask True = admitted. A query that may see no key gets zero weights."""
    s = score(q, k)  # [..., T, S]
    if mask is None:
        return s.softmax(-1)
    nobody = ~mask.any(-1, keepdim=True)
    return s.masked_fill(~mask & ~nobody, -torch.inf).softmax(-1).masked_fill(nobody, 0.0)


def attend(score: Score, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """u [..., T, m_v] of eq. (7.21) for q [..., T, m_q], k [..., S, m_k], v [..., S, m_v] and any score.

    Inner products go to torch's scaled_dot_product_attention, which never holds all weights at once.
    """
    if tracing():
        note("attention", attention_weights(score, q, k, mask))
    if score.scale is None:
        return attention_weights(score, q, k, mask) @ v
    if mask is not None:
        mask = mask | ~mask.any(-1, keepdim=True)  # without any key: see below
    return fast(q, k, v, score.scale, mask)


def fast(q: Tensor, k: Tensor, v: Tensor, scale: float, mask: Tensor | None = None, causal: bool = False) -> Tensor:
    """softmax(scale q k^T) v by torch's kernel; zeros fill up to one width, which the kernel in linear memory needs."""
    m, m_v = q.shape[-1], v.shape[-1]
    if m < m_v:
        q, k = F.pad(q, (0, m_v - m)), F.pad(k, (0, m_v - m))
    elif m_v < m:
        v = F.pad(v, (0, m - m_v))
    u = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=scale)
    return u[..., :m_v] if m_v < m else u


def band(T: int, S: int, ahead: int, window: int | None, device: torch.device) -> Tensor:
    """True where query i, which stands at key i + ahead, may see key j: [T, S]."""
    t = torch.arange(ahead, ahead + T, device=device)[:, None]  # [T, 1]
    tau = torch.arange(S, device=device)  # [S]
    seen = tau <= t
    return seen if window is None else seen & (tau > t - window)


def attend_causally(score: Score, q: Tensor, k: Tensor, v: Tensor, ahead: int = 0, window: int | None = None) -> Tensor:
    """Causal attention of T queries to ahead + T keys, of which `window` are in sight; memory linear in T and S."""
    T, S = q.shape[2], k.shape[2]
    if tracing() or score.scale is None:
        return attend(score, q, k, v, band(T, S, ahead, window, q.device))
    if window is not None and window >= S:
        window = None
    if T == 1:
        return (
            fast(q, k, v, score.scale) if window is None else fast(q, k[:, :, -window:], v[:, :, -window:], score.scale)
        )
    if ahead == 0 and window is None:
        return fast(q, k, v, score.scale, causal=True)
    size = max(1, BLOCK // S) if window is None else max(window, 64)
    blocks = []
    for start in range(0, T, size):
        stop = min(start + size, T)
        first = 0 if window is None else max(0, start + ahead - window + 1)
        keys = slice(first, stop + ahead)
        mask = band(stop - start, keys.stop - first, start + ahead - first, window, q.device)
        blocks.append(fast(q[:, :, start:stop], k[:, :, keys], v[:, :, keys], score.scale, mask))
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks, 2)  # [B, H, T, m_v]


# ---- what queries, keys and values are made of


class Heads(nn.Module):
    """Makes queries [B, H, T, m], keys [B, H, S, m] and values [B, H, S, m_v], and joins u [B, H, T, m_v]."""

    def __init__(self, d_in: int, n_heads: int, d_key: int, d_value: int, d_out: int, d_source: int) -> None:
        super().__init__()
        self.d_in, self.n_heads, self.d_key, self.d_value = d_in, n_heads, d_key, d_value
        self.d_out, self.d_source = d_out, d_source

    def query(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def key_value(self, source: Tensor) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

    def join(self, u: Tensor) -> Tensor:
        raise NotImplementedError


class Simple(Heads):
    """z_q = z_k = v = x: no weights at all (eq. 7.23)."""

    def __init__(self, d_in: int) -> None:
        super().__init__(d_in, 1, d_in, d_in, d_in, d_in)

    def query(self, x: Tensor) -> Tensor:
        return x.unsqueeze(1)  # [B, 1, T, D]

    def key_value(self, source: Tensor) -> tuple[Tensor, Tensor]:
        z = source.unsqueeze(1).clone()  # [B, 1, S, D]; a copy, for the state must not be the caller's input
        return z, z.clone()

    def join(self, u: Tensor) -> Tensor:
        return u.squeeze(1)  # [B, T, D]


class Versatile(Heads):
    """z_q = W_q x, z_k = W_k x, v = W_v x: one head, nothing behind it (eq. 7.24)."""

    def __init__(self, d_in: int, d_key: int | None = None, d_value: int | None = None) -> None:
        d_value = d_in if d_value is None else d_value
        super().__init__(d_in, 1, d_in if d_key is None else d_key, d_value, d_value, d_in)
        self.W_q = nn.Linear(d_in, self.d_key, bias=False)
        self.W_k = nn.Linear(d_in, self.d_key, bias=False)
        self.W_v = nn.Linear(d_in, d_value, bias=False)

    def query(self, x: Tensor) -> Tensor:
        z: Tensor = self.W_q(x)
        return z.unsqueeze(1)  # [B, 1, T, m]

    def key_value(self, source: Tensor) -> tuple[Tensor, Tensor]:
        return self.W_k(source).unsqueeze(1), self.W_v(source).unsqueeze(1)  # [B, 1, S, m], [B, 1, S, m_v]

    def join(self, u: Tensor) -> Tensor:
        return u.squeeze(1)  # [B, T, m_v]


class MultiHead(Heads):
    """z_q = W_q^h x, z_k = W_k^h x, v = W_v^h x for h = 1 .. H, and u = sum_h W_c^h u^h   (eqs 7.25, 7.26).

    d_key = m and d_value = m_v are widths per head, d_in / H unless given. The rows of W_k and W_v stand in one
    matrix, W_kv; d_source is the width of what keys and values are made of, where that is another sequence.
    """

    def __init__(
        self,
        d_in: int,
        n_heads: int,
        d_key: int | None = None,
        d_value: int | None = None,
        d_source: int | None = None,
        bias: bool = False,
    ) -> None:
        if d_in % n_heads and (d_key is None or d_value is None):
            raise UsageError(f"the width {d_in} is not divisible by {n_heads} heads: change n_heads or set d_key")
        m = d_in // n_heads if d_key is None else d_key
        m_v = d_in // n_heads if d_value is None else d_value
        super().__init__(d_in, n_heads, m, m_v, d_in, d_in if d_source is None else d_source)
        self.W_q = nn.Linear(d_in, n_heads * m, bias=bias)
        self.W_kv = nn.Linear(self.d_source, n_heads * (m + m_v), bias=bias)
        self.W_c = nn.Linear(n_heads * m_v, d_in, bias=bias)

    def query(self, x: Tensor) -> Tensor:
        return self.W_q(x).unflatten(2, (self.n_heads, self.d_key)).transpose(1, 2)  # [B, H, T, m]

    def key_value(self, source: Tensor) -> tuple[Tensor, Tensor]:
        k, v = self.W_kv(source).split([self.n_heads * self.d_key, self.n_heads * self.d_value], 2)
        k = k.unflatten(2, (self.n_heads, self.d_key)).transpose(1, 2)  # [B, H, S, m]
        return k, v.unflatten(2, (self.n_heads, self.d_value)).transpose(1, 2)  # [B, H, S, m_v]

    def join(self, u: Tensor) -> Tensor:
        result: Tensor = self.W_c(u.transpose(1, 2).flatten(2))  # [B, T, D]
        return result


# ---- layers


def turning(rotary: Rotary | None, heads: Heads) -> Rotary | None:
    """Rotary positions where they are possible."""
    if rotary is not None and heads.d_key % 2:
        raise UsageError(f"rotary positions need an even width of queries and keys, found {heads.d_key}")
    return rotary


class CausalSelfAttention(Causal):
    """Self-attention to the past (eqs 7.23-7.26, renormalised over tau <= t); the state is a `KeyValue`.

    With a window a position sees itself and the W - 1 before it, the state stays bounded and a stream may be of any
    length. Rows may stand at different positions. Memory is linear in T for inner products.

    >>> y, state = CausalSelfAttention(MultiHead(8, n_heads=2))(torch.randn(3, 5, 8))
    >>> tuple(y.shape), tuple(state.keys.shape), state.length.tolist()
    ((3, 5, 8), (3, 2, 5, 4), [5, 5, 5])
    """

    def __init__(
        self, heads: Heads, score: str = "scaled-dot", window: int | None = None, rotary: Rotary | None = None
    ) -> None:
        super().__init__()
        if window is not None and window < 1:
            raise UsageError(f"invalid value window = {window}: expected an integer >= 1 (the position itself)")
        self.heads = heads
        self.score = score_named(score, heads.d_key, heads.d_key)
        self.window = window
        self.rotary = turning(rotary, heads)
        self.d_in, self.d_out = heads.d_in, heads.d_out
        self.state_grows = window is None
        self.receptive_field = window

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        q, (k, v) = self.heads.query(x), self.heads.key_value(x)
        T = x.shape[1]
        n = 0 if state is None else common_length(self.checked(state))
        if state is not None and n is None:
            return self._by_row(q, k, v, state)
        assert n is not None
        if self.rotary is not None:
            at = torch.arange(n, n + T, device=x.device)  # [T]
            q, k = self.rotary(q, at), self.rotary(k, at)
        if state is None:
            u, after = attend_causally(self.score, q, k, v, 0, self.window), begun(k, v, self.window)
            return self.heads.join(u), after
        state = _of_type(state, k)
        u, keys, values = self._continued(q, k, v, n, state)
        return self.heads.join(u), KeyValue(apart(keys), apart(values), state.length + T)

    def checked(self, state: KeyValue) -> KeyValue:
        """A state of this layer's own widths."""
        H, m, m_v = self.heads.n_heads, self.heads.d_key, self.heads.d_value
        keys, values = state.keys.shape, state.values.shape
        wrong = len(keys) != 4 or len(values) != 4 or keys[:3] != values[:3] or state.length.dim() != 1
        if wrong or keys[1] != H or keys[3] != m or values[3] != m_v:
            raise UsageError(
                f"expected keys and values of shapes [B, {H}, n, {m}] and [B, {H}, n, {m_v}], found "
                f"{list(keys)} and {list(values)}"
            )
        return state

    def tick_multiply_adds(self, position: int) -> int:
        """Every key in sight meets the query, every value its weight."""
        seen = position + 1 if self.window is None else min(position + 1, self.window)
        read = seen * self.heads.n_heads * (self.heads.d_key + self.heads.d_value)
        return read + tick_multiply_adds(self.heads, position) + seen * tick_multiply_adds(self.score, position)

    def _continued(self, q: Tensor, k: Tensor, v: Tensor, n: int, state: KeyValue) -> tuple[Tensor, Tensor, Tensor]:
        """u, keys and values when all rows have n positions behind them."""
        T, W = q.shape[2], self.window
        if W is None or n + T <= W:
            keys, values = written(state.keys, k, n, W), written(state.values, v, n, W)
            u = attend_causally(self.score, q, keys[:, :, : n + T], values[:, :, : n + T], n)
        elif T == 1 and not tracing():  # the ring after the write holds what is in sight, in some order
            keys, values = written(state.keys, k, n, W), written(state.values, v, n, W)
            u = attend(self.score, q, keys, values)
        else:
            past, past_values = in_order(state.keys, n, W), in_order(state.values, n, W)
            k_all, v_all = torch.cat([past, k], 2), torch.cat([past_values, v], 2)  # [B, H, P + T, .]
            u = attend_causally(self.score, q, k_all, v_all, past.shape[2], W)
            keys, values = written(state.keys, k, n, W), written(state.values, v, n, W)
        return u, keys, values

    def _by_row(self, q: Tensor, k: Tensor, v: Tensor, state: KeyValue) -> tuple[Tensor, State]:
        """The same when each row stands at its own position."""
        W = self.window
        at = state.length[:, None] + torch.arange(q.shape[2], device=q.device)  # [B, T]
        if self.rotary is not None:
            q, k = self.rotary(q, at), self.rotary(k, at)
        if torch.compiler.is_exporting():
            after, seen = gathered(state, k, v, W)
            return self.heads.join(attend(self.score, q, after.keys, after.values, seen)), after
        state = _of_type(state, k)
        if W is None:
            keys, values = written_by_row(state.keys, k, at, W), written_by_row(state.values, v, at, W)
            seen = torch.arange(keys.shape[2], device=q.device) <= at[..., None]  # [B, T, S]
            u = attend(self.score, q, keys, values, seen[:, None])
        else:
            keys, values = full_ring(state.keys, W), full_ring(state.values, W)
            tau = torch.cat([slot_positions(state.length, W), at], 1)[:, None]  # [B, 1, W + T]
            t = at[..., None]  # [B, T, 1]
            seen = (tau >= 0) & (tau <= t) & (tau > t - W)  # [B, T, W + T]
            u = attend(self.score, q, torch.cat([keys, k], 2), torch.cat([values, v], 2), seen[:, None])
            keys, values = written_by_row(keys, k, at, W), written_by_row(values, v, at, W)
        return self.heads.join(u), KeyValue(apart(keys), apart(values), state.length + q.shape[2])


def _of_type(state: KeyValue, k: Tensor) -> KeyValue:
    """The state in the precision of now (autocast may have been switched since)."""
    if state.keys.dtype == k.dtype:
        return state
    return KeyValue(state.keys.to(k.dtype), state.values.to(k.dtype), state.length)


class SelfAttention(Encoder):
    """Self-attention to all real positions (eqs 7.25, 7.26); outputs at padding are zero before `join`'s bias."""

    def __init__(self, heads: Heads, score: str = "scaled-dot", rotary: Rotary | None = None) -> None:
        super().__init__()
        self.heads = heads
        self.score = score_named(score, heads.d_key, heads.d_key)
        self.rotary = turning(rotary, heads)
        self.d_in, self.d_out = heads.d_in, heads.d_out

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        x = x.masked_fill(~mask.unsqueeze(-1), 0)
        q, (k, v) = self.heads.query(x), self.heads.key_value(x)
        if self.rotary is not None:
            at = torch.arange(x.shape[1], device=x.device)  # [S]
            q, k = self.rotary(q, at), self.rotary(k, at)
        u = attend(self.score, q, k, v, mask[:, None, None])
        return self.heads.join(u), mask


class Source(NamedTuple):
    """What is attended to: keys [B, H, S, m], values [B, H, S, m_v] and what of it may be seen, [B, 1, 1, S].

    `bias` says the same as a number that is added to scores, 0 or -inf. Where nothing is real all is seen, and is
    zeros: softmax has no value over nothing.
    """

    keys: Tensor
    values: Tensor
    mask: Tensor
    bias: Tensor


class CrossAttention(Causal):
    """Attention of a stream to a source (eq. 7.33): each position looks at all of the source and at no other position.

    The source's keys and values are made once, by `condition(source, mask)`, and stay in the state as `Fixed`.
    """

    receptive_field = 1

    def __init__(self, heads: Heads, score: str = "scaled-dot") -> None:
        super().__init__()
        self.heads = heads
        self.score = score_named(score, heads.d_key, heads.d_key)
        self.d_in, self.d_out = heads.d_in, heads.d_out

    def condition(self, source: Tensor, mask: Tensor | None = None) -> Fixed:
        """The state from source [B, S, D] and mask [B, S], True = real; what stands in the padding changes nothing."""
        if mask is None:
            mask = torch.ones(source.shape[:2], dtype=torch.bool, device=source.device)
        k, v = self.heads.key_value(source.masked_fill(~mask.unsqueeze(-1), 0))
        seen = (mask | ~mask.any(1, keepdim=True))[:, None, None]  # [B, 1, 1, S]
        bias = torch.zeros_like(seen, dtype=k.dtype).masked_fill(~seen, -torch.inf)
        return Fixed(Source(k.contiguous(), v.contiguous(), seen, bias))

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        if state is None:
            raise UsageError("cross-attention needs a source: start with the state of condition(source, mask)")
        k, v, mask, _ = self.checked(state.tree)
        return self.heads.join(attend(self.score, self.heads.query(x), k, v, mask)), state

    def checked(self, source: Source) -> Source:
        """What is attended to, in this layer's own widths."""
        H, m, m_v = self.heads.n_heads, self.heads.d_key, self.heads.d_value
        B, S = source.keys.shape[0], source.mask.shape[-1]
        shapes = [tuple(leaf.shape) for leaf in source]
        if shapes != [(B, H, S, m), (B, H, S, m_v), (B, 1, 1, S), (B, 1, 1, S)]:
            raise UsageError(
                f"expected a source of shapes [B, {H}, S, {m}], [B, {H}, S, {m_v}] and twice [B, 1, 1, S], "
                f"found {', '.join(str(list(shape)) for shape in shapes)}"
            )
        return source

    def tick_multiply_adds(self, position: int) -> int:
        """Keys and values are made before the first tick; the source counts as long as what was written."""
        heads, score = self.heads, self.score
        own = tick_multiply_adds(heads, position) - heads.d_source * heads.n_heads * (heads.d_key + heads.d_value)
        return own + heads.n_heads * (score.query_cost + (position + 1) * (score.pair_cost + heads.d_value))
