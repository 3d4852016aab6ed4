"""Transformer encoder-decoder: encoder blocks read the source, decoder blocks write the target.

    encoder block   self-attention over all real tau, feed-forward                               Fig. 7.15 (a)
    decoder block   self-attention over tau <= t, cross-attention to z*, feed-forward            Fig. 7.15 (b)
    u^{h,(t)} = sum_tau alpha_tau^{h,(t)} W_v^h z*^(tau),   alpha by softmax over tau of s(W_q^h u~^(t), W_k^h z*^(tau))
    pre:  x <- x + Drop(Sub(LN(x)))      post:  x <- LN(x + Drop(Sub(x)))                        eqs (7.31), (7.33)

Vaswani et al. (2017), Fig. 7.16. z* is what the last encoder block gives; (7.33) is normalised over all of the source.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.attention.blocks import BlocksConfig
from unrolled.layers.parts.encoder_decoder import Halves
from unrolled.models import transformer, transformer_encoder


class Config(BlocksConfig):
    d_model: int = Field(256, ge=1)
    """Width of the residual stream (p of the equations)."""
    n_layers: int = Field(3, ge=1)
    """Number of decoder blocks."""
    n_encoder_layers: int | None = Field(None, ge=1)
    """Number of encoder blocks; none: as many as the decoder has."""
    d_ff: int = Field(1024, ge=1)
    """Hidden units of the feed-forward network (N_1)."""
    position: Literal["sinusoid", "rotary", "learned", "none"] = "sinusoid"
    """Position encoding of both halves: sinusoids added (7.30); rotary, in the queries and keys of self-attention; a
    learned table added; none."""


def make(config: Config, sizes: Sizes) -> Halves:
    common = config.model_dump(exclude={"n_encoder_layers"})
    reads = transformer_encoder.Config(**common | {"n_layers": config.n_encoder_layers or config.n_layers})
    writes = transformer.Config(**common, window=0)
    encoder = transformer_encoder.make(reads, Sizes(sizes.d_source, sizes.d_out))
    return Halves(encoder, transformer.attending(writes, sizes.d_in, encoder.d_out))


MODEL = ModelSpec(
    summary="transformer encoder-decoder",
    kind="conditional",
    config=Config,
    tiny=Config(d_model=8, n_layers=2, n_heads=2, d_ff=12, n_positions=24),
    make=make,
    reference="Vaswani et al. 2017; eqs (7.25)-(7.33)",
    aliases=("t5", "bart", "marian", "transformer-encoder-decoder", "seq2seq-transformer"),
    outputs=("next",),
    preset="quick",
    recipe={"lr": 1e-3, "warmup": 400},
    resize=Config.resized,
)
