"""Deep averaging network: the mean (or sum) of word vectors into a multilayer perceptron.

    z_0 = 1/|X| sum_{w in X} v_w        or        z_0 = sum_{w in X} v_w
    z_i = g(W_i z_{i-1} + b_i),         i = 1 .. n_layers

In training each word is left out of X with probability p (word dropout), and the sum is divided by 1 - p.

Iyyer et al. (2015), section 2; the sum is CBOW of Poliak (2024), lecture 26, approach 2. The embedding v is the input
layer's, the softmax behind z_n the task's head.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import Tensor

from unrolled.core import config
from unrolled.core.causal import Encoder
from unrolled.core.compose import without_padding
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.parts.dropout import kept
from unrolled.layers.parts.perceptron import Nonlinearity, Perceptron


class Config(config.Config):
    combine: Literal["mean", "sum"] = "mean"
    """How word vectors are combined."""
    n_layers: int = Field(2, ge=1)
    """Number of hidden layers."""
    d_hidden: int = Field(128, ge=1)
    """Units per hidden layer."""
    activation: Nonlinearity = "relu"
    """Activation function g."""
    word_dropout: float = Field(0.3, ge=0, lt=1)
    """Word dropout: probability that a word is left out in training (p)."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the hidden units."""

    def resized(self, width: int) -> Config:
        """The same with so many units per layer: what a comparison at equal size changes."""
        return self.updated({"d_hidden": width})


class DeepAveraging(Encoder):
    """x [B, S, D] -> z_n [B, 1, d_hidden] and a mask of ones; a row without words is averaged to zero."""

    def __init__(self, config: Config, d_in: int) -> None:
        super().__init__()
        self.combine = config.combine
        self.word_dropout = config.word_dropout
        self.perceptron = Perceptron(d_in, config.d_hidden, config.n_layers, config.activation, config.dropout)
        self.d_in, self.d_out = d_in, self.perceptron.d_out

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        p = self.word_dropout if self.training else 0.0
        X = kept(mask, p) if p else mask  # [B, S]
        z = without_padding(x, X).sum(dim=1)  # [B, D]
        z = z / (1 - p) if self.combine == "sum" else z / X.sum(dim=1, keepdim=True).clamp_min(1)
        return self.perceptron(z).unsqueeze(1), mask.new_ones(mask.shape[0], 1)  # [B, 1, D'], [B, 1]


def make(config: Config, sizes: Sizes) -> DeepAveraging:
    return DeepAveraging(config, sizes.d_in)


MODEL = ModelSpec(
    summary="deep averaging network: the mean (or sum) of word vectors into a multilayer perceptron",
    kind="encoder",
    config=Config,
    tiny=Config(d_hidden=5),
    make=make,
    reference="Iyyer et al. 2015",
    aliases=("fasttext", "average", "deep-averaging-network"),
    outputs=("whole",),
    preset="quick",
    recipe={"lr": 1e-3},
    resize=Config.resized,
)
