"""The attention family against torch.nn, and against a few lines from the page."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from unrolled.layers.attention.attention import (
    CausalSelfAttention,
    CrossAttention,
    MultiHead,
    SelfAttention,
    Simple,
    Versatile,
)
from unrolled.layers.attention.blocks import EncoderBlock
from unrolled.layers.attention.feed_forward import FeedForward


def copy_heads(heads: MultiHead, module: nn.MultiheadAttention) -> None:
    """Give our heads the weights of torch's."""
    d = module.embed_dim
    with torch.no_grad():
        if module.in_proj_weight is not None:
            parts = module.in_proj_weight.split(d)
        else:
            parts = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
        heads.W_q.weight.copy_(parts[0])
        heads.W_kv.weight.copy_(torch.cat(parts[1:]))
        heads.W_c.weight.copy_(module.out_proj.weight)
        if module.in_proj_bias is not None:
            heads.W_q.bias.copy_(module.in_proj_bias[:d])
            heads.W_kv.bias.copy_(module.in_proj_bias[d:])
            heads.W_c.bias.copy_(module.out_proj.bias)


def twins(bias: bool, source: int | None = None) -> tuple[MultiHead, nn.MultiheadAttention]:
    torch.manual_seed(2)
    module = nn.MultiheadAttention(8, 2, bias=bias, batch_first=True, kdim=source, vdim=source).double()
    if bias:
        nn.init.normal_(module.in_proj_bias)
        nn.init.normal_(module.out_proj.bias)
    heads = MultiHead(8, 2, d_source=source, bias=bias).double()
    copy_heads(heads, module)
    return heads, module


def same_gradients(heads: MultiHead, module: nn.MultiheadAttention, ours: Tensor, theirs: Tensor) -> None:
    weights = torch.arange(ours.numel()).view_as(ours).sin()
    (ours * weights).sum().backward()
    (theirs * weights).sum().backward()
    torch.testing.assert_close(heads.W_c.weight.grad, module.out_proj.weight.grad)
    torch.testing.assert_close(torch.cat([heads.W_q.weight.grad, heads.W_kv.weight.grad]), module.in_proj_weight.grad)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("window", [None, 3])
def test_causal(bias: bool, window: int | None) -> None:
    heads, module = twins(bias)
    x = torch.randn(2, 9, 8).double()
    y, _ = CausalSelfAttention(heads, window=window)(x)
    t = torch.arange(9)
    unseen = t[None] > t[:, None]
    if window is not None:
        unseen |= t[None] <= t[:, None] - window
    wanted, _ = module(x, x, x, attn_mask=unseen, need_weights=False)
    torch.testing.assert_close(y, wanted)
    same_gradients(heads, module, y, wanted)


@pytest.mark.parametrize("bias", [True, False])
def test_to_all_with_padding(bias: bool) -> None:
    heads, module = twins(bias)
    x, mask = torch.randn(3, 6, 8).double(), torch.arange(6) < torch.tensor([[6], [1], [4]])
    y, _ = SelfAttention(heads)(x, mask)
    wanted, _ = module(x, x, x, key_padding_mask=~mask, need_weights=False)
    torch.testing.assert_close(y[mask], wanted[mask])
    same_gradients(heads, module, y[mask], wanted[mask])


def test_to_a_source_of_another_width() -> None:
    heads, module = twins(False, source=5)
    x, source = torch.randn(2, 4, 8).double(), torch.randn(2, 7, 5).double()
    mask = torch.arange(7) < torch.tensor([[7], [3]])
    layer = CrossAttention(heads)
    y, _ = layer(x, layer.condition(source, mask))
    wanted, _ = module(x, source, source, key_padding_mask=~mask, need_weights=False)
    torch.testing.assert_close(y, wanted)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_a_block_is_torchs_encoder_layer(norm: str, activation: str) -> None:
    torch.manual_seed(6)
    theirs = nn.TransformerEncoderLayer(
        8, 2, 12, dropout=0.0, activation=activation, batch_first=True, norm_first=norm == "pre"
    ).double()
    feed_forward = FeedForward(8, 12, activation)  # type: ignore[arg-type]
    ours = EncoderBlock(SelfAttention(MultiHead(8, 2, bias=True)), feed_forward, norm).double()  # type: ignore[arg-type]
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.5)
    heads = ours.attention.heads
    assert isinstance(heads, MultiHead)
    copy_heads(heads, theirs.self_attn)
    pairs = [(feed_forward.W_1, theirs.linear1), (feed_forward.W_2, theirs.linear2), (ours.norm_1, theirs.norm1),
             (ours.norm_2, theirs.norm2)]  # fmt: skip
    for mine, their in pairs:
        mine.load_state_dict(their.state_dict())
    x, mask = torch.randn(2, 5, 8).double(), torch.arange(5) < torch.tensor([[5], [3]])
    y, _ = ours(x, mask)
    torch.testing.assert_close(y[mask], theirs(x, src_key_padding_mask=~mask)[mask])


# ---- from the page


def dot(q: Tensor, k: Tensor) -> float:
    return math.exp((q @ k).item() / math.sqrt(max(len(q), len(k))))


def test_simple_self_attention_is_equation_7_23() -> None:
    x = torch.randn(1, 6, 3).double()
    y, _ = CausalSelfAttention(Simple(3))(x)
    for t in range(6):
        alpha = [dot(x[0, t], x[0, tau]) for tau in range(t + 1)]
        u = sum(a / sum(alpha) * x[0, tau] for tau, a in enumerate(alpha))
        torch.testing.assert_close(y[0, t], u)


def test_versatile_self_attention_is_equation_7_24() -> None:
    heads = Versatile(3, 4, 5).double()
    assert [name for name, _ in heads.named_parameters()] == ["W_q.weight", "W_k.weight", "W_v.weight"]  # no bias
    W_q, W_k, W_v = heads.W_q.weight, heads.W_k.weight, heads.W_v.weight
    x = torch.randn(1, 6, 3).double()
    causal, _ = CausalSelfAttention(heads)(x)
    free, _ = SelfAttention(heads)(x, torch.ones(1, 6, dtype=torch.bool))
    for y, last in ((causal, lambda t: t + 1), (free, lambda t: 6)):
        for t in range(6):
            alpha = [dot(W_q @ x[0, t], W_k @ x[0, tau]) for tau in range(last(t))]
            u = sum(a / sum(alpha) * (W_v @ x[0, tau]) for tau, a in enumerate(alpha))
            torch.testing.assert_close(y[0, t], u)


def test_multi_head_attention_is_equations_7_25_and_7_26() -> None:
    """Denominators over all admitted tau; (7.25) as printed sums only t' <= t in them."""
    p, H, m, m_v, T = 4, 3, 2, 5, 6
    heads = MultiHead(p, H, m, m_v).double()
    x = torch.randn(1, T, p).double()
    y, _ = SelfAttention(heads)(x, torch.ones(1, T, dtype=torch.bool))
    W_q = heads.W_q.weight.view(H, m, p)
    W_k, W_v = heads.W_kv.weight[: H * m].view(H, m, p), heads.W_kv.weight[H * m :].view(H, m_v, p)
    W_c = heads.W_c.weight.view(p, H, m_v)
    for t in range(T):
        u = torch.zeros(p).double()
        for h in range(H):
            alpha = [dot(W_q[h] @ x[0, t], W_k[h] @ x[0, tau]) for tau in range(T)]
            u += W_c[:, h] @ sum(a / sum(alpha) * (W_v[h] @ x[0, tau]) for tau, a in enumerate(alpha))
        torch.testing.assert_close(y[0, t], u)
