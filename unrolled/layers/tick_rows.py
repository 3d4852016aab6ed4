"""One tick of a decoder block for some rows without gradients: beam search, where most of the cost is calls.

The same numbers as the block's own equations (a test holds the two together) with fewer calls: one position, so nothing
is transposed and no mask is made; all rows at the same position, as beams are; the new key and value are written into
the spare room of the state. For one query two small products are quicker than torch's attention kernel. `tick_rows`
returns None where this does not apply.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.core.state import Fixed
from unrolled.layers import packed
from unrolled.layers.attention import CausalSelfAttention, CrossAttention, MultiHead, Source
from unrolled.layers.feed_forward import FeedForward
from unrolled.layers.key_value import KeyValue, common_length, written
from unrolled.layers.tick_block import DecoderParts, usual

Ticked = tuple[Tensor, tuple[KeyValue, Fixed]]


def tick_rows(block: DecoderParts, x: Tensor, past: KeyValue, about: Fixed) -> Ticked | None:
    """x [B, 1, D] -> y [B, 1, D] and the state after it, or None."""
    found = usual(block, x, past) if past.keys.dtype == x.dtype else None
    if found is None:
        return None
    attention, cross, (own, over, _, feed_forward) = block.attention, block.cross, found
    n, W = common_length(past), attention.window
    if n is None or (W is not None and n >= W):
        return None
    z = x.squeeze(1)  # [B, D]
    if block.norm == "pre":
        u, past = _attend(attention, own, normalised(block.norm_1, z), past, n)
        z = z + u
        z = z + _look(cross, over, normalised(block.norm_2, z), about.tree)
        z = z + _feed(feed_forward, normalised(block.norm_3, z))
    else:
        u, past = _attend(attention, own, z, past, n)
        z = normalised(block.norm_1, z + u)
        z = normalised(block.norm_2, z + _look(cross, over, z, about.tree))
        z = normalised(block.norm_3, z + _feed(feed_forward, z))
    return z.unsqueeze(1), (past, about)


def normalised(norm: nn.LayerNorm, z: Tensor) -> Tensor:
    weights: Any = norm._parameters  # norm.weight would cost a tick more
    return F.layer_norm(z, norm.normalized_shape, weights["weight"], weights["bias"], norm.eps)


def linear(layer: nn.Module, z: Tensor) -> Tensor:
    weights: Any = layer._parameters
    return F.linear(z, weights["weight"], weights["bias"])


def _attend(
    attention: CausalSelfAttention, heads: MultiHead, h: Tensor, past: KeyValue, n: int
) -> tuple[Tensor, KeyValue]:
    """sum_h W_c^h u^h (eqs 7.25, 7.26) for the newest position, h [B, D]."""
    B, H, m, m_v = len(h), heads.n_heads, heads.d_key, heads.d_value
    q = linear(heads.W_q, h).view(B * H, 1, m)
    kv = linear(heads.W_kv, h)  # [B, H (m + m_v)]
    k, v = kv[:, : H * m].view(B, H, 1, m), kv[:, H * m :].view(B, H, 1, m_v)
    if attention.rotary is not None:
        at = torch.tensor([n], device=h.device)  # [1]
        q, k = attention.rotary(q.view(B, H, 1, m), at).view(B * H, 1, m), attention.rotary(k, at)
    keys, values = written(past.keys, k, n, attention.window), written(past.values, v, n, attention.window)
    seen_keys, seen_values = keys.flatten(0, 1)[:, : n + 1], values.flatten(0, 1)[:, : n + 1]  # [B H, n + 1, .]
    s = torch.bmm(q * attention.score.scale, seen_keys.mT)  # type: ignore[operator]  # [B H, 1, n + 1]
    u = torch.bmm(torch.softmax(s, -1), seen_values)  # [B H, 1, m_v]
    return linear(heads.W_c, u.view(B, -1)), KeyValue(keys, values, past.length + 1)


def _look(cross: CrossAttention, heads: MultiHead, h: Tensor, source: Source) -> Tensor:
    """The same for a source (eq. 7.33)."""
    B, H, S = len(h), heads.n_heads, source.keys.shape[2]
    q = linear(heads.W_q, h).view(B * H, 1, heads.d_key)
    s = torch.bmm(q * cross.score.scale, source.keys.flatten(0, 1).mT)  # type: ignore[operator]  # [B H, 1, S]
    s.view(B, H, 1, S).add_(source.bias)
    u = torch.bmm(torch.softmax(s, -1), source.values.flatten(0, 1))  # [B H, 1, m_v]
    return linear(heads.W_c, u.view(B, -1))


def _feed(feed_forward: FeedForward, h: Tensor) -> Tensor:
    """W_2 S(W_1 x + b_1) + b_2."""
    W_1, W_2, relu = feed_forward.W_1._parameters, feed_forward.W_2._parameters, feed_forward.activation is F.relu
    inner = packed.linear(h, W_1["weight"], W_1["bias"], "relu" if relu else "none")  # type: ignore[arg-type]
    return packed.linear(inner if relu else feed_forward.activation(inner), W_2["weight"], W_2["bias"])  # type: ignore[arg-type]
