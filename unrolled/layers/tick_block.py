"""One tick of a transformer block for one row without gradients: generation, where the cost is calls.

As in `tick.py`, numpy works on the tensors' own memory: the weights are never copied, and the new key and value are
written into the spare room of the state. `tick_block` returns None where this does not apply, and the block then runs
its own equations; a test holds the two together.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.core.state import Fixed
from unrolled.core.trace import tracing
from unrolled.layers.attention import CausalSelfAttention, CrossAttention, MultiHead, Source
from unrolled.layers.feed_forward import FeedForward
from unrolled.layers.key_value import KeyValue, may_overwrite, with_room
from unrolled.layers.tick import Array, arrays, plain


class Parts(Protocol):
    """What a block is made of."""

    @property
    def attention(self) -> nn.Module: ...
    @property
    def feed_forward(self) -> nn.Module: ...
    @property
    def norm(self) -> str: ...
    @property
    def norm_1(self) -> nn.LayerNorm: ...
    @property
    def norm_2(self) -> nn.LayerNorm: ...


class DecoderParts(Parts, Protocol):
    """What a decoder block is made of."""

    @property
    def attention(self) -> CausalSelfAttention: ...
    @property
    def cross(self) -> CrossAttention: ...
    @property
    def norm_3(self) -> nn.LayerNorm: ...


def tick_block(block: Parts, x: Tensor, state: KeyValue) -> tuple[Tensor, KeyValue] | None:
    """x [1, 1, D] -> y [1, 1, D] and the state after it, or None."""
    attention, feed_forward = block.attention, block.feed_forward
    if (
        not plain(x, state.keys)
        or not may_overwrite(state.keys)
        or tracing()
        or torch.is_autocast_enabled("cpu")
        or not isinstance(attention, CausalSelfAttention)
        or attention.score.scale is None
        or type(attention.heads) is not MultiHead
        or type(feed_forward) is not FeedForward
    ):
        return None
    z = x.numpy()[0, 0]  # [D]
    if block.norm == "pre":
        u, state = _attend(normalised(block.norm_1, z), state, attention, attention.heads)
        z = z + u
        z += _feed(feed_forward, normalised(block.norm_2, z))
    else:
        u, state = _attend(z, state, attention, attention.heads)
        z = normalised(block.norm_1, z + u)
        z = normalised(block.norm_2, z + _feed(feed_forward, z))
    return torch.from_numpy(z[None, None]), state


def tick_decoder_block(
    block: DecoderParts, x: Tensor, past: KeyValue, about: Fixed
) -> tuple[Tensor, tuple[KeyValue, Fixed]] | None:
    """The same for a block that attends to a source."""
    found = usual(block, x, past) if plain(x, past.keys) else None
    if found is None:
        return None
    attention, (own, cross, scale, feed_forward) = block.attention, found
    z = x.numpy()[0, 0]  # [D]
    if block.norm == "pre":
        u, past = _attend(normalised(block.norm_1, z), past, attention, own)
        z = z + u
        z += _look(normalised(block.norm_2, z), about.tree, cross, scale)
        z += _feed(feed_forward, normalised(block.norm_3, z))
    else:
        u, past = _attend(z, past, attention, own)
        z = normalised(block.norm_1, z + u)
        z = normalised(block.norm_2, z + _look(z, about.tree, cross, scale))
        z = normalised(block.norm_3, z + _feed(feed_forward, z))
    return torch.from_numpy(z[None, None]), (past, about)


class Usual(NamedTuple):
    """The parts of a decoder block that the quick ways know."""

    own: MultiHead
    cross: MultiHead
    scale: float
    feed_forward: FeedForward


def usual(block: DecoderParts, x: Tensor, past: KeyValue) -> Usual | None:
    """The parts of a block where a quick way knows them and may write into its state, or None."""
    own, cross, feed_forward = block.attention.heads, block.cross.heads, block.feed_forward
    scale = block.cross.score.scale
    if (
        not may_overwrite(past.keys)
        or tracing()
        or torch.is_autocast_enabled(x.device.type)
        or block.attention.score.scale is None
        or scale is None
        or type(own) is not MultiHead
        or type(cross) is not MultiHead
        or type(feed_forward) is not FeedForward
    ):
        return None
    return Usual(own, cross, scale, feed_forward)


def normalised(norm: nn.LayerNorm, z: Array) -> Array:
    """LN(z) = gamma (z - mean) / sqrt(var + eps) + beta."""
    weights = arrays(norm)
    d = z - np.add.reduce(z) / len(z)
    d *= 1 / math.sqrt(d.dot(d) / len(z) + norm.eps)
    d *= weights["weight"]
    d += weights["bias"]
    return d


def linear(layer: nn.Module, z: Array, out: Array | None = None) -> Array:
    """W z + b, into `out` where that is given."""
    weights = arrays(layer)
    y: Array = weights["weight"].dot(z, out)
    if "bias" in weights:
        y += weights["bias"]
    return y


@lru_cache(maxsize=4)
def turn(n: int, m: int, base: float, dtype: str) -> tuple[Array, Array]:
    """(cos, cos) [m] and (-sin, sin) [2, m/2] of the angles of position n; the layers of a model ask for the same."""
    w = n * base ** (-np.arange(0, m, 2) / m)  # [m/2]
    cos, sin = np.cos(w).astype(dtype), np.sin(w).astype(dtype)
    return np.concatenate([cos, cos]), np.stack([-sin, sin])


def rotated(z: Array, cos: Array, sin: Array) -> Array:
    """(a, b) -> (a cos - b sin, b cos + a sin) for the halves a, b of each z [., m]."""
    halves = (len(z), 2, z.shape[1] // 2)
    turned: Array = z * cos
    both = turned.reshape(halves)  # the same memory
    both += z.reshape(halves)[:, ::-1] * sin
    return turned


def _attend(h: Array, state: KeyValue, attention: CausalSelfAttention, heads: MultiHead) -> tuple[Array, KeyValue]:
    """sum_h W_c^h u^h (eqs 7.25, 7.26) for the newest position."""
    H, m, m_v, W = heads.n_heads, heads.d_key, heads.d_value, attention.window
    n = int(state.length)
    qkv = np.empty(H * (2 * m + m_v), h.dtype)
    linear(heads.W_q, h, qkv[: H * m])
    linear(heads.W_kv, h, qkv[H * m :])
    qk, v = qkv[: 2 * H * m].reshape(2 * H, m), qkv[2 * H * m :].reshape(H, m_v)
    if attention.rotary is not None:
        qk = rotated(qk, *turn(n, m, attention.rotary.base, qk.dtype.name))
    q, k = qk[:H], qk[H:]
    seen, slot = (n + 1, n) if W is None else (min(n + 1, W), n % W)
    keys, values = state.keys, state.values
    if seen > keys.shape[2]:
        keys, values = with_room(keys, n, seen, W), with_room(values, n, seen, W)
    all_keys, all_values = keys.numpy()[0], values.numpy()[0]  # [H, room, m], [H, room, m_v]
    all_keys[:, slot] = k
    all_values[:, slot] = v
    q *= attention.score.scale
    s = np.matmul(all_keys[:, :seen], q[:, :, None])[:, :, 0]  # [H, S]
    u = _weighted(s, all_values[:, :seen])  # [H m_v]
    return linear(heads.W_c, u), KeyValue(keys, values, state.length + 1)


def _look(h: Array, source: Source, heads: MultiHead, scale: float) -> Array:
    """The same for a source (eq. 7.33)."""
    q = linear(heads.W_q, h).reshape(heads.n_heads, heads.d_key)
    q *= scale
    s = np.matmul(source.keys.numpy()[0], q[:, :, None])[:, :, 0]  # [H, S]
    s += source.bias.numpy()[0, 0]
    return linear(heads.W_c, _weighted(s, source.values.numpy()[0]))


def _weighted(s: Array, values: Array) -> Array:
    """softmax(s) times values [H, S, m_v], heads side by side; s [H, S] is used up."""
    s -= np.maximum.reduce(s, axis=1, keepdims=True)
    np.exp(s, out=s)
    s /= np.add.reduce(s, axis=1, keepdims=True)
    u: Array = np.matmul(s[:, None], values)  # [H, 1, m_v]
    return u.reshape(-1)


def _feed(feed_forward: FeedForward, h: Array) -> Array:
    """W_2 S(W_1 x + b_1) + b_2."""
    inner = linear(feed_forward.W_1, h)  # [N_1]
    if feed_forward.activation is F.relu:
        np.maximum(inner, 0, out=inner)
    else:
        inner = feed_forward.activation(torch.from_numpy(inner)).numpy()
    return linear(feed_forward.W_2, inner)
