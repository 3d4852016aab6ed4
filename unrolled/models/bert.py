"""BERT: a transformer encoder with learned positions, for masked tokens and for what is fine-tuned from them.

    x_t = LN(E_{w_t} + S_{k_t} + P_t)                  token, segment and position; the first two by the input layer
    x <- LN(x + Drop(Sub(x)))                          for Sub = bidirectional attention (7.25), feed-forward

Devlin et al. (2019). Attention has biases. The head of pre-training is layers/parts/pre_training.py.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from unrolled.core.spec import ModelSpec, Sizes
from unrolled.models import transformer_encoder


class Config(transformer_encoder.Config):
    position: Literal["learned", "sinusoid", "rotary", "none"] = "learned"
    """Position encoding: a learned table added; sinusoids added (7.30); rotary, in queries and keys; none."""
    norm: Literal["pre", "post"] = "post"
    """Whether the normalisation comes before or after each sublayer."""
    bias: bool = True
    """Biases in the maps of attention."""
    epsilon: float = Field(1e-12, gt=0, lt=1)
    """Number that keeps a normalisation from dividing by zero."""
    n_positions: int = Field(512, ge=1)
    """Maximum number of positions for learned encodings; other kinds have no limit."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout on the input vectors and on the output of each attention and feed-forward layer."""


class Bert(transformer_encoder.TransformerEncoder):
    """A transformer encoder whose input vectors, with their positions, are normalised first."""

    def __init__(self, config: Config, d_in: int) -> None:
        super().__init__(config, d_in)
        self.first = nn.Sequential(config.normalisation(config.d_model), nn.Dropout(config.dropout))

    def entered(self, x: Tensor) -> Tensor:
        y: Tensor = self.first(super().entered(x))
        return y


def make(config: Config, sizes: Sizes) -> Bert:
    return Bert(config, sizes.d_in)


MODEL = ModelSpec(
    summary="transformer encoder for pre-training on masked tokens (BERT)",
    kind="encoder",
    config=Config,
    tiny=Config(d_model=8, n_layers=2, n_heads=2, d_ff=12, n_positions=24, dropout=0.0),
    make=make,
    reference="Devlin et al. 2019",
    aliases=("roberta", "masked-transformer"),
    outputs=("each", "whole"),
    recipe={"lr": 1e-3, "warmup": 200},
    resize=Config.resized,
)
