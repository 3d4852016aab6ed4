"""Multilayer perceptrons on one vector per example.

    MLP_1(x) = g(x W_1 + b_1) W_2 + b_2
    MLP_2(x) = g(g(x W_1 + b_1) W_2 + b_2) W_3 + b_3

Poliak (2024), lecture 26. The last affine map is the task's head, so what stands here ends with the last g.
"""

from __future__ import annotations

from typing import Literal, Self

import torch
from pydantic import Field
from torch import Tensor, nn

from unrolled.core.causal import Encoder
from unrolled.core.compose import without_padding
from unrolled.core.config import Config

Nonlinearity = Literal["relu", "tanh", "sigmoid"]

NONLINEARITIES = {"relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid}


class Perceptron(nn.Module):
    """h_0 = x, h_i = g(W_i h_{i-1} + b_i): [..., d_in] -> h_n [..., d_hidden] of n layers; dropout on each h_i."""

    def __init__(
        self, d_in: int, d_hidden: int, n_layers: int = 1, activation: Nonlinearity = "relu", dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(d_hidden if i else d_in, d_hidden) for i in range(n_layers))
        self.activation = NONLINEARITIES[activation]
        self.dropout = nn.Dropout(dropout)
        self.d_in, self.d_out = d_in, d_hidden if n_layers else d_in

    def forward(self, x: Tensor) -> Tensor:
        h = x
        for layer in self.layers:
            h = self.dropout(self.activation(layer(h)))  # [..., d_hidden]
        return h

    def serial_steps(self, length: int) -> int:
        return len(self.layers)


class OfOneVector(Encoder):
    """A perceptron of the one vector that stands for an example: x [B, 1, d_in] -> [B, 1, d_out]."""

    def __init__(self, perceptron: Perceptron) -> None:
        super().__init__()
        self.perceptron = perceptron
        self.d_in, self.d_out = perceptron.d_in, perceptron.d_out

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        return without_padding(self.perceptron(without_padding(x, mask)), mask), mask


class PerceptronConfig(Config):
    """The settings of a perceptron on one vector per example."""

    n_layers: int = Field(1, ge=1)
    """Number of hidden layers: 1 is MLP_1, 2 is MLP_2."""
    d_hidden: int = Field(128, ge=1)
    """Units per hidden layer."""
    activation: Nonlinearity = "relu"
    """Activation function g."""
    dropout: float = Field(0.5, ge=0, lt=1)
    """Dropout on the hidden units."""

    def resized(self, width: int) -> Self:
        """The same with so many units per layer: what a comparison at equal size changes."""
        return self.updated({"d_hidden": width})


def perceptron(config: PerceptronConfig, d_in: int) -> Perceptron:
    """The perceptron of these settings for vectors of this width."""
    return Perceptron(d_in, config.d_hidden, config.n_layers, config.activation, config.dropout)
