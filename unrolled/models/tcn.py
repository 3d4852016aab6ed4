"""Temporal convolutional network: causal convolutions with doubling dilation.

    residual:  h_l = relu(R x + F(x)),   F(x) = relu(W' * relu(W * x + b) + b'),   x = h_{l-1}
    plain:     h_l = relu(W * h_{l-1} + b)

* is a causal convolution of dilation 2^(l-1), R is the identity, or a 1x1 convolution where widths differ; dropout
follows each relu inside F. Residual: Bai, Kolter & Koltun (2018), section 3.3 (there whole channels are dropped, as in
their code single values here). Plain: the lecture notebook on next characters of Krähenbühl & Wu (2019), there with
widths 32, 64, 128, 256 and kernel 3.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from unrolled.core import config
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.conv.conv import CausalConv, NormedConv
from unrolled.layers.conv.temporal import TCN, Block, Unit


class Config(config.Config):
    form: Literal["residual", "plain"] = "residual"
    """Residual blocks of two convolutions, or one plain convolution per layer."""
    widths: tuple[Annotated[int, Field(ge=1)], ...] = Field((128, 128, 128, 128, 128), min_length=1)
    """Channels of each block or layer, from the first (dilation 1) to the last, such as [64, 64, 64]."""
    kernel: int = Field(3, ge=1)
    """Kernel size of each convolution."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout after each ReLU."""
    weight_norm: bool = False
    """Weight normalisation (Salimans & Kingma 2016), as in the residual form of the paper."""

    def resized(self, width: int) -> Config:
        """All channels alike: what a comparison at equal size changes."""
        return self.updated({"widths": [width] * len(self.widths)})


def make(config: Config, sizes: Sizes) -> TCN:
    d_in = sizes.d_in
    conv = NormedConv if config.weight_norm else CausalConv
    layers: list[Unit | Block] = []
    for level, width in enumerate(config.widths):
        first = Unit(conv(d_in, width, config.kernel, 2**level), config.dropout)
        if config.form == "plain":
            layers.append(first)
        else:
            second = Unit(conv(width, width, config.kernel, 2**level), config.dropout)
            layers.append(Block(first, second, None if d_in == width else nn.Linear(d_in, width)))
        d_in = width
    return TCN(*layers, d_out=config.widths[-1])


MODEL = ModelSpec(
    summary="temporal convolutional network: causal convolutions with doubling dilation",
    kind="causal",
    config=Config,
    tiny=Config(widths=(4, 6), kernel=2),
    make=make,
    reference="Bai, Kolter & Koltun 2018",
    aliases=("temporal-convolution", "conv", "convolution", "conv1d"),
    preset="quick",
    resize=Config.resized,
)
