"""One tick of a transformer block for one row without gradients: generation, where the cost is calls.

As in `tick.py`, numpy works on the tensors' own memory: the weights are never copied, and the new key and value are
written into the spare room of the state. `tick_block` returns None where this does not apply, and the block then runs
its own equations; a test holds the two together.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.core.state import Fixed
from unrolled.core.trace import tracing
from unrolled.layers.attention.attention import CausalSelfAttention, CrossAttention, MultiHead, Source
from unrolled.layers.attention.feed_forward import FeedForward
from unrolled.layers.attention.key_value import KeyValue, may_overwrite, with_room
from unrolled.layers.attention.position import Rotary
from unrolled.layers.recurrent.tick import Array, Weights, affine, arrays, bare, plain


class Parts(Protocol):
    """What a block is made of."""

    @property
    def attention(self) -> nn.Module: ...
    @property
    def feed_forward(self) -> nn.Module: ...
    @property
    def norm(self) -> str: ...
    @property
    def norm_1(self) -> nn.Module: ...
    @property
    def norm_2(self) -> nn.Module: ...
    @property
    def dropout(self) -> nn.Dropout: ...


class DecoderParts(Parts, Protocol):
    """What a decoder block is made of."""

    @property
    def attention(self) -> CausalSelfAttention: ...
    @property
    def cross(self) -> CrossAttention: ...
    @property
    def norm_3(self) -> nn.Module: ...


class Usual(NamedTuple):
    """The parts of a block that the quick ways know, all of them bare."""

    attention: CausalSelfAttention
    feed_forward: FeedForward
    cross: CrossAttention | None
    linears: list[nn.Module]  # W_q, W_kv, W_c of the attention, W_1, W_2, and of a decoder W_q, W_c of the other
    norms: list[nn.Module]


def usual(block: Parts, x: Tensor, past: KeyValue, about: Fixed | None = None) -> Usual | None:
    """The parts of a block where a quick way knows them and may write into its state, or None."""
    parts: dict[str, Any] = block._modules  # type: ignore[attr-defined]  # block.attention would cost a tick more
    attention, feed_forward, cross = parts["attention"], parts["feed_forward"], parts.get("cross")
    if (
        not may_overwrite(past.keys)
        or tracing()
        or torch.is_autocast_enabled(x.device.type)
        or not bare(attention, CausalSelfAttention)
        or not bare(attention.heads, MultiHead)
        or attention.score.scale is None
        or not (attention.rotary is None or bare(attention.rotary, Rotary))
        or not bare(feed_forward, FeedForward)
        or not bare(parts["dropout"], nn.Dropout)
    ):
        return None
    attention.checked(past)
    heads, inner, norms = attention.heads._modules, feed_forward._modules, [parts["norm_1"], parts["norm_2"]]
    linears = [heads["W_q"], heads["W_kv"], heads["W_c"], inner["W_1"], inner["W_2"]]
    if cross is not None and about is not None:
        cross.checked(about.tree)
        if not (bare(cross, CrossAttention) and bare(cross.heads, MultiHead) and cross.score.scale is not None):
            return None
        linears += [cross.heads._modules["W_q"], cross.heads._modules["W_c"]]
        norms.append(parts["norm_3"])
    return Usual(attention, feed_forward, cross, linears, norms)


class Known(NamedTuple):
    """A block for one row: its parts, with their weights as arrays."""

    attention: CausalSelfAttention
    feed_forward: FeedForward
    cross: CrossAttention | None
    linears: list[Weights]
    norms: list[tuple[nn.Module, Weights]]


def known(block: Parts, x: Tensor, past: KeyValue, about: Fixed | None = None) -> Known | None:
    """A block whose tick is done here, or None."""
    found = usual(block, x, past, about) if plain(x, past.keys) else None
    if found is None:
        return None
    attention, feed_forward, cross, modules, norms = found
    linears = [arrays(each, nn.Linear, x.dtype, "weight") for each in modules]
    scales = [(norm, arrays(norm, nn.LayerNorm, x.dtype, "weight", "bias")) for norm in norms]
    if any(each is None for each in linears) or any(scale is None for _, scale in scales):
        return None
    return Known(attention, feed_forward, cross, linears, scales)  # type: ignore[arg-type]


def tick_block(block: Parts, x: Tensor, state: KeyValue) -> tuple[Tensor, KeyValue] | None:
    """x [1, 1, D] -> y [1, 1, D] and the state after it, or None."""
    found = known(block, x, state)
    if found is None:
        return None
    norm_1, norm_2 = found.norms
    z = x.numpy()[0, 0]  # [D]
    if block.norm == "pre":
        u, state = _attend(normalised(norm_1, z), state, found)
        z = z + u
        z += _feed(normalised(norm_2, z), found)
    else:
        u, state = _attend(z, state, found)
        z = normalised(norm_1, z + u)
        z = normalised(norm_2, z + _feed(z, found))
    return torch.from_numpy(z[None, None]), state


def tick_decoder_block(
    block: DecoderParts, x: Tensor, past: KeyValue, about: Fixed
) -> tuple[Tensor, tuple[KeyValue, Fixed]] | None:
    """The same for a block that attends to a source."""
    found = known(block, x, past, about) if about.tree.keys.dtype == x.dtype else None
    if found is None:
        return None
    norm_1, norm_2, norm_3 = found.norms
    z = x.numpy()[0, 0]  # [D]
    if block.norm == "pre":
        u, past = _attend(normalised(norm_1, z), past, found)
        z = z + u
        z += _look(normalised(norm_2, z), about.tree, found)
        z += _feed(normalised(norm_3, z), found)
    else:
        u, past = _attend(z, past, found)
        z = normalised(norm_1, z + u)
        z = normalised(norm_2, z + _look(z, about.tree, found))
        z = normalised(norm_3, z + _feed(z, found))
    return torch.from_numpy(z[None, None]), (past, about)


def normalised(norm: tuple[nn.Module, Weights], z: Array) -> Array:
    """LN(z) = gamma (z - mean) / sqrt(var + eps) + beta."""
    module, weights = norm
    d = z - np.add.reduce(z) / len(z)
    d *= 1 / math.sqrt(d.dot(d) / len(z) + module.eps)
    d *= weights["weight"]
    d += weights["bias"]
    return d


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


def _attend(h: Array, state: KeyValue, found: Known) -> tuple[Array, KeyValue]:
    """sum_h W_c^h u^h (eqs 7.25, 7.26) for the newest position."""
    attention, (W_q, W_kv, W_c, *_) = found.attention, found.linears
    heads = attention.heads
    H, m, m_v, W = heads.n_heads, heads.d_key, heads.d_value, attention.window
    n = int(state.length)
    qkv = np.empty(H * (2 * m + m_v), h.dtype)
    affine(W_q, h, qkv[: H * m])
    affine(W_kv, h, qkv[H * m :])
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
    return affine(W_c, u), KeyValue(keys, values, state.length + 1)


def _look(h: Array, source: Source, found: Known) -> Array:
    """The same for a source (eq. 7.33)."""
    assert found.cross is not None
    heads, scale, (W_q, W_c) = found.cross.heads, found.cross.score.scale, found.linears[5:]
    q = affine(W_q, h).reshape(heads.n_heads, heads.d_key)
    q *= scale
    s = np.matmul(source.keys.numpy()[0], q[:, :, None])[:, :, 0]  # [H, S]
    s += source.bias.numpy()[0, 0]
    return affine(W_c, _weighted(s, source.values.numpy()[0]))


def _weighted(s: Array, values: Array) -> Array:
    """softmax(s) times values [H, S, m_v], heads side by side; s [H, S] is used up."""
    s -= np.maximum.reduce(s, axis=1, keepdims=True)
    np.exp(s, out=s)
    s /= np.add.reduce(s, axis=1, keepdims=True)
    u: Array = np.matmul(s[:, None], values)  # [H, 1, m_v]
    return u.reshape(-1)


def _feed(h: Array, found: Known) -> Array:
    """W_2 S(W_1 x + b_1) + b_2."""
    activation, (W_1, W_2) = found.feed_forward.activation, found.linears[3:5]
    inner = affine(W_1, h)  # [N_1]
    if activation is F.relu:
        np.maximum(inner, 0, out=inner)
    else:
        inner = activation(torch.from_numpy(inner)).numpy()
    return affine(W_2, inner)
