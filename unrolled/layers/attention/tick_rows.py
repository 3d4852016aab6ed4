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
from unrolled.layers.attention import packed
from unrolled.layers.attention.attention import Source
from unrolled.layers.attention.key_value import KeyValue, common_length, written
from unrolled.layers.attention.tick_block import DecoderParts, Usual, usual
from unrolled.layers.recurrent.tick import bare

Ticked = tuple[Tensor, tuple[KeyValue, Fixed]]


def tick_rows(block: DecoderParts, x: Tensor, past: KeyValue, about: Fixed) -> Ticked | None:
    """x [B, 1, D] -> y [B, 1, D] and the state after it, or None."""
    found = usual(block, x, past, about) if past.keys.dtype == about.tree.keys.dtype == x.dtype else None
    if found is None or not _known(found):
        return None
    n, W = common_length(past), found.attention.window
    if n is None or (W is not None and n >= W):
        return None
    norm_1, norm_2, norm_3 = found.norms
    z = x.squeeze(1)  # [B, D]
    if block.norm == "pre":
        u, past = _attend(normalised(norm_1, z), past, n, found)
        z = z + u
        z = z + _look(normalised(norm_2, z), about.tree, found)
        z = z + _feed(normalised(norm_3, z), found)
    else:
        u, past = _attend(z, past, n, found)
        z = normalised(norm_1, z + u)
        z = normalised(norm_2, z + _look(z, about.tree, found))
        z = normalised(norm_3, z + _feed(z, found))
    return z.unsqueeze(1), (past, about)


def _known(found: Usual) -> bool:
    """True when what is done here is what the modules would do."""
    return all(bare(each, nn.Linear, "weight") for each in found.linears) and all(
        bare(norm, nn.LayerNorm) for norm in found.norms
    )


def normalised(norm: nn.Module, z: Tensor) -> Tensor:
    weights: Any = norm._parameters  # norm.weight would cost a tick more
    return F.layer_norm(z, norm.normalized_shape, weights["weight"], weights["bias"], norm.eps)  # type: ignore[arg-type]


def linear(layer: nn.Module, z: Tensor) -> Tensor:
    weights: Any = layer._parameters
    return F.linear(z, weights["weight"], weights["bias"])


def _attend(h: Tensor, past: KeyValue, n: int, found: Usual) -> tuple[Tensor, KeyValue]:
    """sum_h W_c^h u^h (eqs 7.25, 7.26) for the newest position, h [B, D]."""
    attention, (W_q, W_kv, W_c, *_) = found.attention, found.linears
    heads = attention.heads
    B, H, m, m_v = len(h), heads.n_heads, heads.d_key, heads.d_value
    q = linear(W_q, h).view(B * H, 1, m)
    kv = linear(W_kv, h)  # [B, H (m + m_v)]
    k, v = kv[:, : H * m].view(B, H, 1, m), kv[:, H * m :].view(B, H, 1, m_v)
    if attention.rotary is not None:
        at = torch.tensor([n], device=h.device)  # [1]
        q, k = attention.rotary(q.view(B, H, 1, m), at).view(B * H, 1, m), attention.rotary(k, at)
    keys, values = written(past.keys, k, n, attention.window), written(past.values, v, n, attention.window)
    seen_keys, seen_values = keys.flatten(0, 1)[:, : n + 1], values.flatten(0, 1)[:, : n + 1]  # [B H, n + 1, .]
    s = torch.bmm(q * attention.score.scale, seen_keys.mT)  # type: ignore[operator]  # [B H, 1, n + 1]
    u = torch.bmm(torch.softmax(s, -1), seen_values)  # [B H, 1, m_v]
    return linear(W_c, u.view(B, -1)), KeyValue(keys, values, past.length + 1)


def _look(h: Tensor, source: Source, found: Usual) -> Tensor:
    """The same for a source (eq. 7.33)."""
    cross: Any = found.cross
    heads, (W_q, W_c) = cross.heads, found.linears[5:]
    B, H, S = len(h), heads.n_heads, source.keys.shape[2]
    q = linear(W_q, h).view(B * H, 1, heads.d_key)
    s = torch.bmm(q * cross.score.scale, source.keys.flatten(0, 1).mT)  # [B H, 1, S]
    s.view(B, H, 1, S).add_(source.bias)
    u = torch.bmm(torch.softmax(s, -1), source.values.flatten(0, 1))  # [B H, 1, m_v]
    return linear(W_c, u.view(B, -1))


def _feed(h: Tensor, found: Usual) -> Tensor:
    """W_2 S(W_1 x + b_1) + b_2."""
    activation, (W_1, W_2) = found.feed_forward.activation, (each._parameters for each in found.linears[3:5])
    relu = activation is F.relu
    inner = packed.linear(h, W_1["weight"], W_1["bias"], "relu" if relu else "none")  # type: ignore[arg-type]
    return packed.linear(inner if relu else activation(inner), W_2["weight"], W_2["bias"])  # type: ignore[arg-type]
