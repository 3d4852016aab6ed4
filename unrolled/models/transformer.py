"""Transformer, decoder only: blocks of causal self-attention (GPT).

    u^(t) = sum_h W_c^h sum_{tau <= t} alpha_tau^{h,(t)} W_v^h x^(tau)        alpha by softmax over tau <= t of
    s(W_q^h x^(t), W_k^h x^(tau)), s(q, k) = q . k / sqrt(m)                   eqs (7.24)-(7.26)
    pre:  x <- x + Drop(Sub(LN(x)))      post:  x <- LN(x + Drop(Sub(x)))      for Sub = attention, feed-forward

Vaswani et al. (2017); Radford et al. (2018). With a window W each layer sees t - W < tau <= t: the state stays bounded
and a stream may be of any length. It is trained on random windows of W positions and then reads any length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pydantic import Field
from torch import nn

from unrolled.core.compose import Serial
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.attention.attention import CausalSelfAttention, CrossAttention
from unrolled.layers.attention.blocks import BlocksConfig, CausalBlock, DecoderBlock
from unrolled.layers.attention.feed_forward import feed_forward_named
from unrolled.layers.attention.position import Placed, Rotary, position_named
from unrolled.layers.parts.encoder_decoder import SourcedSerial


class Config(BlocksConfig):
    position: Literal["rotary", "sinusoid", "learned", "sinusoid-appended", "one-hot", "joint", "none"] = "rotary"
    """Position encoding: rotary, in queries and keys; sinusoids added (7.30); a learned table added; sinusoids (7.29)
    or one-hot appended and mapped back; jointly learned (7.28); none."""
    window: int = Field(128, ge=0)
    """Attention window of a layer, the position itself included; 0: the whole past, in which case sequences should not
    be longer than those in training."""
    rotary_base: float = Field(10_000.0, gt=1)
    """Base of rotary positions: the larger, the slower their angles grow."""


class Transformer(Serial):
    """Positions, blocks, and behind pre-norm blocks a last normalisation."""

    def __init__(self, layers: list[nn.Module], d_out: int) -> None:
        super().__init__(*layers)
        self.d_out = d_out


def make(config: Config, sizes: Sizes) -> Transformer:
    width = config.d_model

    def block() -> CausalBlock:
        return CausalBlock(_attention(config), _feed_forward(config), config.norm, config.dropout, config.normalisation)

    return Transformer(_around(config, sizes.d_in, block), width)


def attending(config: Config, d_in: int, d_source: int) -> SourcedSerial:
    """The same with decoder blocks, which attend to a source of this width (eq. 7.33)."""
    width = config.d_model

    def block() -> DecoderBlock:
        attention, heads = _attention(config), config.heads(d_source)
        return DecoderBlock(
            attention, CrossAttention(heads), _feed_forward(config), config.norm, config.dropout, config.normalisation
        )

    return SourcedSerial(*_around(config, d_in, block), d_out=width)


def _attention(config: Config) -> CausalSelfAttention:
    rotary = Rotary(config.rotary_base) if config.position == "rotary" else None
    return CausalSelfAttention(config.heads(), window=config.window or None, rotary=rotary)


def _feed_forward(config: Config) -> nn.Module:
    return feed_forward_named(config.activation, config.d_model, config.d_ff)


def _around(config: Config, d_in: int, block: Callable[[], nn.Module]) -> list[nn.Module]:
    """Positions before the blocks, and behind pre-norm blocks a last normalisation."""
    width = config.d_model
    position = position_named(config.position, d_in, width, config.n_positions)
    layers: list[nn.Module] = [] if position is None else [Placed(position)]
    entering = d_in if position is None else position.d_out
    if entering != width:
        layers.append(nn.Linear(entering, width))
    layers += [block() for _ in range(config.n_layers)]
    if config.norm == "pre":
        layers.append(config.normalisation(width))
    return layers


MODEL = ModelSpec(
    summary="decoder-only transformer with causal self-attention (GPT)",
    kind="causal",
    config=Config,
    tiny=Config(d_model=8, n_layers=2, n_heads=2, d_ff=12, window=0, n_positions=24),
    make=make,
    reference="Vaswani et al. 2017; eqs (7.24)-(7.32)",
    aliases=("gpt", "decoder-only", "causal-transformer", "self-attention", "gpt2", "llama"),
    preset="quick",
    recipe={"lr": 3e-3, "length": 128, "batch_size": 8, "windows": "random"},
    resize=Config.resized,
    attend=attending,
)
