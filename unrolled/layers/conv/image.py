"""Layers for images of unlike heights: convolutions, normalisation and positions that never see what lies below one.

An image is [B, C, H, W] with `real` [B, H], True for its own rows, or None where all rows of all images are. The rows
below are padding and hold zeros before every convolution, as the edge of an image does; so a padded image gives what it
gives alone.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.core.errors import UsageError
from unrolled.layers.attention.position import sinusoids
from unrolled.layers.recurrent.cells import uniform

BASE = 100.0  # of the sinusoids: a map is some tens of regions wide, so slower waves than these would tell nothing


def fold(x: Tensor, channels: int) -> Tensor:
    """Rows of pixels [B, H, W C] as an image [B, C, H, W], channels last in memory, so nothing is moved.

    >>> tuple(fold(torch.zeros(2, 5, 12), channels=3).shape)
    (2, 3, 5, 4)
    """
    return x.unflatten(2, (-1, channels)).permute(0, 3, 1, 2)  # [B, C, H, W]


def unfold(z: Tensor) -> Tensor:
    """An image [B, C, H, W] as its regions [B, H W, C], row by row from the top left."""
    return z.permute(0, 2, 3, 1).flatten(1, 2)


def above(z: Tensor, real: Tensor | None) -> Tensor:
    """z [B, C, H, W], finite, with zeros in the rows that are padding; a product costs less than masked_fill here."""
    return z if real is None else z * real[:, None, :, None].to(z.dtype)


class ChannelNorm(nn.LayerNorm):
    """Layer normalisation over the channels of every pixel alone, so neither batch nor padding enters: [B, C, H, W]."""

    def forward(self, z: Tensor) -> Tensor:
        return super().forward(z.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class RowConv(nn.Conv2d):
    """W * x + b without what lies below an image; with stride s, ceil(h / s) of h rows are real."""

    def __init__(self, d_in: int, d_out: int, kernel: int, stride: int = 1) -> None:
        super().__init__(d_in, d_out, kernel, stride, padding=kernel // 2)
        nn.init.kaiming_normal_(self.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, z: Tensor, real: Tensor | None) -> Tensor:  # type: ignore[override]
        return super().forward(above(z, real))  # [B, D', H', W']


class PixelNorm(nn.Module):
    """LN(W x + b) of every `stride`-th pixel: a convolution of single pixels, as the product that it is.

    torch's own with a stride ended the process in its backward pass where channels were few (2.13, channels last).
    """

    def __init__(self, d_in: int, d_out: int, stride: int) -> None:
        super().__init__()
        self.W = nn.Parameter(torch.randn(d_out, d_in).mul_((2 / d_out) ** 0.5))  # as kaiming_normal_ above
        self.b = uniform(d_in, d_out)
        self.norm = nn.LayerNorm(d_out)
        self.stride = stride

    def forward(self, z: Tensor) -> Tensor:
        kept = z[:, :, :: self.stride, :: self.stride].permute(0, 2, 3, 1)  # [B, H', W', D]
        y: Tensor = self.norm(F.linear(kept, self.W, self.b))
        return y.permute(0, 3, 1, 2)  # [B, D', H', W']


class ResidualBlock(nn.Module):
    """y = relu(F(x) + P x),   F(x) = LN(W_2 * relu(LN(W_1 * x + b_1)) + b_2)       (He et al. 2016, eqs 1 and 2)

    Without biases before LN a pale region would look like a strong one: LN is blind to scale.
    P is the identity, or where the shape changes a linear map of single pixels with the block's stride.
    """

    def __init__(self, d_in: int, d_out: int, stride: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.first, self.norm_1 = RowConv(d_in, d_out, 3, stride), ChannelNorm(d_out)
        self.second, self.norm_2 = RowConv(d_out, d_out, 3), ChannelNorm(d_out)
        self.P = PixelNorm(d_in, d_out, stride) if stride > 1 or d_in != d_out else None
        self.dropout = nn.Dropout(dropout)
        self.stride = stride

    def forward(self, x: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor | None]:
        kept = None if real is None else real[:, :: self.stride]  # [B, H']
        u = self.dropout(F.relu(self.norm_1(self.first(x, real))))
        u = self.norm_2(self.second(u, kept))
        straight = x if self.P is None else self.P(x)
        return F.relu(u + straight), kept


class ImagePosition(nn.Module):
    """y_ij = z_ij + r_i + c_j: where a region stands, told by its row i and its column j; z [B, C, H, W].

    sinusoid: half of the channels are sinusoids of the row, half of the column; learned: a table of rows (n_rows) and
    one of columns; none: regions are a set.
    """

    def __init__(self, kind: str, d_model: int, n_rows: int, n_columns: int) -> None:
        super().__init__()
        if kind not in ("sinusoid", "learned", "none"):
            raise UsageError(f"there is no position kind '{kind}' for images; use sinusoid, learned or none")
        self.kind, self.d_model = kind, d_model
        if kind == "learned":
            self.rows = nn.Parameter(0.02 * torch.randn(n_rows, d_model))
            self.columns = nn.Parameter(0.02 * torch.randn(n_columns, d_model))

    def forward(self, z: Tensor, real: Tensor | None) -> Tensor:
        i, j = (torch.arange(n, device=z.device) for n in z.shape[2:])  # [H], [W]
        if self.kind == "none":
            return z
        if self.kind == "learned":
            most, n = len(self.rows), len(i) if real is None else int(real.sum(1).max())
            if n > most:
                raise UsageError(
                    f"the map of an image has {n} rows of regions, but the table of positions has {most}; use "
                    "smaller images, a larger n_positions of cnn, or position = sinusoid"
                )
            r, c = F.embedding(i.clamp(max=most - 1), self.rows), F.embedding(j, self.columns)  # [H, C], [W, C]
            return z + (r[:, None] + c).permute(2, 0, 1)  # padding may stand beyond the table
        half = 2 * -(-self.d_model // 4)
        r, c = sinusoids(i, half, BASE), sinusoids(j, half, BASE)  # [H, half], [W, half]
        both = torch.cat(
            [r[:, None].expand(-1, j.shape[0], -1), c.expand(i.shape[0], -1, -1)], dim=-1
        )  # [H, W, 2 half]
        return z + both[..., : self.d_model].to(z.dtype).permute(2, 0, 1)
