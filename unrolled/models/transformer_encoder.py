"""Transformer encoder: blocks of bidirectional self-attention.

    u^(t) = sum_h W_c^h sum_tau alpha_tau^{h,(t)} W_v^h x^(tau)        alpha by softmax over all real tau
    post: x <- LN(x + Drop(Sub(x)))                                    pre: x <- x + Drop(Sub(LN(x)))

Eqs (7.25), (7.26), (7.31).

Vaswani et al. (2017).
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from unrolled.core.causal import Encoder
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.trace import note
from unrolled.layers.attention.attention import SelfAttention
from unrolled.layers.attention.blocks import BlocksConfig, EncoderBlock
from unrolled.layers.attention.feed_forward import feed_forward_named
from unrolled.layers.attention.position import PlacedAll, Rotary, position_named


class Config(BlocksConfig):
    position: Literal["sinusoid", "learned", "sinusoid-appended", "one-hot", "joint", "rotary", "none"] = "sinusoid"
    """Position encoding: sinusoids added (7.30); a learned table added; sinusoids (7.29) or one-hot appended and mapped
    back; jointly learned (7.28); rotary, in queries and keys; none."""


class TransformerEncoder(Encoder):
    """Positions, blocks, and behind pre-norm blocks a last normalisation."""

    def __init__(self, config: Config, d_in: int) -> None:
        super().__init__()
        width = config.d_model
        position = position_named(config.position, d_in, width, config.n_positions)
        self.position = None if position is None else PlacedAll(position)
        self.max_length = None if position is None else position.max_length
        entering = d_in if position is None else position.d_out
        self.entry = nn.Linear(entering, width) if entering != width else nn.Identity()
        self.blocks = nn.ModuleList(
            EncoderBlock(
                SelfAttention(config.heads(), rotary=Rotary() if config.position == "rotary" else None),
                feed_forward_named(config.activation, width, config.d_ff),
                config.norm,
                config.dropout,
                config.normalisation,
            )
            for _ in range(config.n_layers)
        )
        self.last = config.normalisation(width) if config.norm == "pre" else nn.Identity()
        self.d_in, self.d_out = d_in, width

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        x = x.masked_fill(~mask.unsqueeze(-1), 0)
        if self.position is not None:
            x, mask = self.position(x, mask)
        x = self.entered(x)
        note("layer", x)
        for block in self.blocks:
            x, mask = block(x, mask)
            note("layer", x)
        return self.last(x), mask

    def entered(self, x: Tensor) -> Tensor:
        """What the first block reads, of input vectors with their positions."""
        y: Tensor = self.entry(x)
        return y


def make(config: Config, sizes: Sizes) -> TransformerEncoder:
    return TransformerEncoder(config, sizes.d_in)


MODEL = ModelSpec(
    summary="transformer encoder with bidirectional self-attention",
    kind="encoder",
    config=Config,
    tiny=Config(d_model=8, n_layers=2, n_heads=2, d_ff=12, n_positions=24),
    make=make,
    reference="Vaswani et al. 2017; eqs (7.25)-(7.32)",
    aliases=("encoder-only", "encoder"),
    outputs=("each", "whole"),
    preset="standard",
    recipe={"lr": 1e-3},
    resize=Config.resized,
)
