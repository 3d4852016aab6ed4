"""Convolutional encoder of images: a map of regions that a decoder attends to or a readout pools.

    z_0  = relu(W_0 * image + b_0)                            kernel 5, stride `first_stride`
    z_k  = relu(F(z) + P z)                                   n_blocks blocks in each of n_stages stages
    F(z) = LN(W_2 * relu(LN(W_1 * z + b_1)) + b_2)
    y_ij = LN(z_ij) + r_i + c_j                               the regions, and where each one stands

He et al. (2016), eqs 1 and 2. Each stage after the first halves height and width and doubles the channels. LN stands
where the paper normalises over the batch: it goes over the channels of one pixel, so that no image sees another.

x [B, H, W C] holds the rows of an image, its pixels from left to right, the channels of a pixel together; images of
unlike heights are padded below. y [B, H' W', D'] is the map, row by row.
"""

from __future__ import annotations

from typing import Literal, Self

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.core import config
from unrolled.core.causal import Encoder
from unrolled.core.compose import require_right_padding, without_padding
from unrolled.core.errors import UsageError
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.trace import note
from unrolled.layers.conv.image import ChannelNorm, ImagePosition, ResidualBlock, RowConv, fold, unfold


class Config(config.Config):
    channels: int | None = Field(None, ge=1)
    """Channels of a pixel: 3 for red, green and blue, 1 for grey. None: 3 if the row width is a multiple of 3,
    otherwise 1; set it to 1 for grey images of such a width."""
    d_first: int = Field(32, ge=1)
    """Channels of the first stage; each further stage has twice as many."""
    n_stages: int = Field(3, ge=1, le=8)
    """Number of stages; each after the first halves height and width."""
    n_blocks: int = Field(1, ge=1)
    """Number of residual blocks per stage."""
    first_stride: int = Field(2, ge=1)
    """Stride of the first convolution: 1 keeps every pixel, 2 is four times as fast."""
    position: Literal["sinusoid", "learned", "none"] = "sinusoid"
    """Position encoding of regions."""
    n_positions: int = Field(128, ge=1)
    """Maximum number of rows of the map, for a learned position encoding."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout between the two convolutions of a block."""

    def resized(self, width: int) -> Self:
        """`width` channels in the last stage, about."""
        return self.updated({"d_first": max(1, width >> (self.n_stages - 1))})


class ImageEncoder(Encoder):
    """Rows of pixels -> regions; `note`s the height and width of the map as "grid"."""

    def __init__(self, config: Config, d_in: int) -> None:
        super().__init__()
        C = config.channels or (1 if d_in % 3 else 3)
        if d_in % C:
            raise UsageError(
                f"rows of {d_in} numbers cannot be pixels of {C} channels; set channels of cnn to 1 for grey "
                "images, 3 for colour images"
            )
        self.channels, self.first_stride = C, config.first_stride
        widths = [config.d_first << stage for stage in range(config.n_stages)]
        self.first = RowConv(C, widths[0], 5, config.first_stride)
        before, blocks = widths[0], list[ResidualBlock]()
        for stage, width in enumerate(widths):
            for block in range(config.n_blocks):
                stride = 2 if stage and not block else 1
                blocks.append(ResidualBlock(before, width, stride, config.dropout))
                before = width
        self.blocks = nn.ModuleList(blocks)
        self.norm = ChannelNorm(before)
        n_columns = -(-(d_in // C) // (config.first_stride << (config.n_stages - 1)))
        self.position = ImagePosition(config.position, before, config.n_positions, n_columns)
        self.d_in, self.d_out = d_in, before

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        require_right_padding(mask, "an image")
        z = fold(without_padding(x, mask), self.channels)  # [B, C, H, W]
        whole = not torch.compiler.is_compiling() and bool(mask.all())  # then no layer has padding to take away
        z, real = F.relu(self.first(z, None)), None if whole else mask[:, :: self.first_stride]  # [B, D, H', W']
        for block in self.blocks:
            z, real = block(z, real)
        z = self.position(self.norm(z), real)
        note("grid", tuple(z.shape[2:]))
        if real is None:
            return unfold(z), mask.new_ones(z.shape[0], z.shape[2] * z.shape[3])
        regions = real.repeat_interleave(z.shape[3], dim=1)  # [B, H' W']
        return without_padding(unfold(z), regions), regions

    def serial_steps(self, length: int) -> int:
        """One step for each convolution."""
        return 1 + 2 * len(self.blocks)


def make(config: Config, sizes: Sizes) -> ImageEncoder:
    return ImageEncoder(config, sizes.d_in)


MODEL = ModelSpec(
    summary="convolutional network for images: a map of regions that a decoder attends to or a readout pools",
    kind="encoder",
    config=Config,
    tiny=Config(channels=1, d_first=4, n_stages=2, first_stride=1, n_positions=8),
    make=make,
    reference="He et al. 2016",
    aliases=("resnet", "conv2d"),
    reads=("numbers",),  # pixels as they are: a linear layer before them would mix columns
    outputs=("regions", "whole"),
    recipe={"lr": 1e-3},
    resize=Config.resized,
)
