"""Transformer blocks: the two places of the norm, parameters, both kinds, and ticks."""

from __future__ import annotations

import itertools
from typing import Literal

import pytest
import torch
from torch import nn

from unrolled.engine.stepper import stepped
from unrolled.layers.attention.attention import CausalSelfAttention, MultiHead, SelfAttention, Versatile
from unrolled.layers.attention.blocks import CausalBlock, EncoderBlock
from unrolled.layers.attention.feed_forward import FeedForward
from unrolled.layers.attention.position import Rotary
from unrolled.testing import check_causal, check_encoder

Norm = Literal["pre", "post"]


def block(norm: Norm, window: int | None = None, rotary: bool = False, **settings: object) -> CausalBlock:
    torch.manual_seed(4)
    attention = CausalSelfAttention(MultiHead(6, 3), window=window, rotary=Rotary() if rotary else None)
    return CausalBlock(attention, FeedForward(6, 9, "gelu"), norm, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_blocks_are_lawful(norm: Norm) -> None:
    check_causal(block(norm))
    windowed = block(norm, window=3, rotary=True)
    check_causal(windowed)
    assert (windowed.receptive_field, windowed.state_grows) == (3, False)
    check_encoder(EncoderBlock(SelfAttention(MultiHead(6, 3)), FeedForward(6, 9), norm))


def test_parameters_of_equation_7_32() -> None:
    p, N_1, m, m_v, H = 512, 2048, 64, 64, 8
    layer = EncoderBlock(SelfAttention(MultiHead(p, H, m, m_v)), FeedForward(p, N_1), "post")
    count = sum(parameter.numel() for parameter in layer.parameters())
    assert count == 4 * p + 2 * N_1 * p + N_1 + p + H * (2 * m * p + 2 * m_v * p) == 3_150_336


def test_the_norm_is_the_books() -> None:
    """Population deviation and eps inside the root."""
    norm, z = block("pre").norm_1.double(), torch.randn(6).double()
    norm.weight.data, norm.bias.data = torch.randn(6).double(), torch.randn(6).double()
    mean = sum(z) / 6
    variance = sum((z - mean) ** 2) / 6
    torch.testing.assert_close(norm(z), norm.weight * (z - mean) / torch.sqrt(variance + norm.eps) + norm.bias)


def test_where_the_norm_stands() -> None:
    x = torch.randn(2, 5, 6)
    pre, post = block("pre"), block("post")
    y = x + pre.attention(pre.norm_1(x))[0]
    torch.testing.assert_close(pre(x)[0], y + pre.feed_forward(pre.norm_2(y)))
    y = post.norm_1(x + post.attention(x)[0])
    torch.testing.assert_close(post(x)[0], post.norm_2(y + post.feed_forward(y)))


def test_dropout_acts_on_what_is_added_and_only_in_training() -> None:
    layer, x = block("pre", dropout=0.5), torch.randn(2, 5, 6)
    assert not torch.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    torch.testing.assert_close(layer(x)[0], block("pre")(x)[0])
    with torch.no_grad():
        _, state = layer.train()(x[:1])
        ticks = {tuple(layer(x[:1, :1], state)[0].flatten().tolist()) for _ in range(5)}
    assert len(ticks) > 1


# ---- ticks


@pytest.mark.parametrize(
    ("norm", "window", "rotary"), [*itertools.product(["pre", "post"], [None, 1, 5], [True, False])]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ticks_are_the_same_block(norm: Norm, window: int | None, rotary: bool, dtype: torch.dtype) -> None:
    layer, x = block(norm, window, rotary).to(dtype), torch.randn(1, 80, 6, dtype=dtype)
    for parameter in layer.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    whole, _ = layer(x)
    for step in (layer, stepped(layer)):
        with torch.no_grad():
            y, state = layer(x[:, :3])
            ys = [y]
            for t in range(3, 80):
                y, state = step(x[:, t : t + 1], state)
                ys.append(y)
        torch.testing.assert_close(torch.cat(ys, 1), whole)


def test_blocks_of_other_parts() -> None:
    other = CausalBlock(CausalSelfAttention(Versatile(6)), nn.Sequential(nn.Linear(6, 6), nn.Tanh()))
    check_causal(other)
    x = torch.randn(2, 6, 6)
    layer = block("pre", rotary=True)
    with torch.no_grad():
        whole, _ = layer(x)
        _, state = layer(x[:, :5])
        y, _ = layer(x[:, 5:], state)
    torch.testing.assert_close(y, whole[:, 5:])


def test_the_tick_leaves_its_input_alone() -> None:
    for norm in ("pre", "post"):
        layer, x = block(norm), torch.randn(1, 3, 6)  # type: ignore[arg-type]
        with torch.no_grad():
            _, state = layer(x[:, :2])
            length, copy = state.length.clone(), x.clone()
            y, after = layer(x[:, 2:], state)
            assert torch.equal(x, copy)
            assert torch.equal(state.length, length)
            kept = y.clone()
            layer(x[:, :1], after)
            assert torch.equal(y, kept)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_tick_adds_in_memory_of_its_own(norm: Norm) -> None:
    """What comes in is read, never added to."""
    layer, x = block(norm), torch.randn(1, 3, 6)
    for rows in (1, 2):
        x = torch.randn(rows, 3, 6)
        with torch.no_grad():
            _, state = layer(x[:, :2])
            entry = x[:, 2:].clone()
            kept = entry.clone()
            y, _ = layer(entry, state)
        assert torch.equal(entry, kept)
        assert y.data_ptr() != entry.data_ptr()
