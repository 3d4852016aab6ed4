"""Temporal convolutional network: causal convolutions whose dilation doubles from layer to layer.

    residual:  h_l = relu(R x + F(x)),   F(x) = relu(W' * relu(W * x + b) + b'),   x = h_{l-1}
    plain:     h_l = relu(W * h_{l-1} + b)

* is a causal convolution of dilation 2^(l-1), R is the identity, or a 1x1 convolution where widths differ; dropout
follows each relu inside F. Residual: Bai, Kolter & Koltun (2018), section 3.3 (there whole channels are dropped, as in
their code single values here). Plain: the lecture notebook on next characters of Krähenbühl & Wu (2019), there with
widths 32, 64, 128, 256 and kernel 3.
"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from unrolled.core import config
from unrolled.core.causal import Causal
from unrolled.core.compose import Serial
from unrolled.core.state import State
from unrolled.layers.conv import CausalConv, NormedConv

KIND = "causal"
REFERENCE = "Bai, Kolter & Koltun 2018"


class Config(config.Config):
    form: Literal["residual", "plain"] = "residual"
    """Blocks of two convolutions with a residual path, or one convolution per layer."""
    widths: tuple[Annotated[int, Field(ge=1)], ...] = Field((128, 128, 128, 128, 128), min_length=1)
    """Channels of each block or layer, from the first (dilation 1) to the last."""
    kernel: int = Field(3, ge=1)
    """Taps of each convolution."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout after each relu."""
    weight_norm: bool = False
    """Weights as length times direction (Salimans & Kingma 2016), as in the residual form of the paper."""


TINY = Config(widths=(4, 6), kernel=2)


class Block(Causal):
    """Two convolutions of one dilation beside a residual path."""

    def __init__(self, inner: Serial, d_in: int, d_out: int) -> None:
        super().__init__()
        self.inner = inner
        self.carry = nn.Identity() if d_in == d_out else nn.Linear(d_in, d_out)
        self.receptive_field = inner.receptive_field

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        y, state = self.inner(x, state)
        return torch.relu(self.carry(x) + y), state


class TCN(Serial):
    """Layers or blocks one after the other."""

    def __init__(self, *layers: nn.Module, d_out: int) -> None:
        super().__init__(*layers)
        self.d_out = d_out


def make(config: Config, d_in: int, d_out: int) -> TCN:
    conv = NormedConv if config.weight_norm else CausalConv
    layers: list[nn.Module] = []
    for level, width in enumerate(config.widths):
        first = [conv(d_in, width, config.kernel, 2**level), nn.ReLU(), *_dropout(config)]
        second = [conv(width, width, config.kernel, 2**level), nn.ReLU(), *_dropout(config)]
        layers += first if config.form == "plain" else [Block(Serial(*first, *second), d_in, width)]
        d_in = width
    return TCN(*layers, d_out=d_in)


def _dropout(config: Config) -> list[nn.Module]:
    return [nn.Dropout(config.dropout)] if config.dropout else []
