"""The layers of a temporal convolutional network: causal convolutions with doubling dilation.

    residual:  h_l = relu(R x + F(x)),   F(x) = relu(W' * relu(W * x + b) + b'),   x = h_{l-1}
    plain:     h_l = relu(W * h_{l-1} + b)

Bai, Kolter & Koltun (2018), section 3.3.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal
from unrolled.core.compose import Serial, without_padding
from unrolled.core.state import State
from unrolled.layers.conv.conv import CausalConv, right_aligned


def every(line: Tensor, n: int, stride: int) -> Tensor:
    """The last entry of a line [B, m, ..], the one `stride` before it, .., n at most, in their order."""
    first = (line.shape[1] - 1) % stride
    return line[:, first::stride][:, -n:]


def hidden(y: Tensor, real: Tensor | None, stride: int) -> Tensor:
    """y [B, n, D], whose entries stand `stride` apart, with zeros where a row has not begun: real [B, m] is False."""
    return y if real is None else without_padding(y, every(real, y.shape[1], stride))


class Unit(Causal):
    """dropout(relu(W * x + b))."""

    def __init__(self, conv: CausalConv, dropout: float) -> None:
        super().__init__()
        self.conv = conv
        self.dilation = conv.dilation
        self.dropout = nn.Dropout(dropout)
        self.receptive_field = conv.receptive_field
        self.d_in = conv.d_in

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        y, state = self.conv(x, state)
        y = torch.relu(y)
        return self.dropout(y) if self.training else y, state

    def thinned(self, line: Tensor, real: Tensor | None, n: int, stride: int) -> Tensor:
        return self.dropout(hidden(torch.relu(self.conv.thinned(line, n, stride)), real, stride))


class Block(Causal):
    """Two units of one dilation beside a residual path."""

    def __init__(self, first: Unit, second: Unit, carry: nn.Linear | None) -> None:
        super().__init__()
        self.inner = Serial(first, second)
        self.carry = carry
        self.dilation = first.dilation
        self.receptive_field = self.inner.receptive_field
        self.d_in = first.d_in

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        y, state = self.inner(x, state)
        return torch.relu((x if self.carry is None else self.carry(x)) + y), state

    def thinned(self, line: Tensor, real: Tensor | None, n: int, stride: int) -> Tensor:
        first, second = self.inner
        y = first.thinned(line, real, (n - 1) * stride + second.conv.kernel, 1)
        y = second.thinned(y, real, n, stride)  # [B, n, D']
        x = every(line, n, stride)
        return hidden(torch.relu((x if self.carry is None else self.carry(x)) + y), real, stride)


class TCN(Serial):
    """Units or blocks one after the other."""

    def __init__(self, *layers: Unit | Block, d_out: int) -> None:
        super().__init__(*layers)
        self.d_in, self.d_out = layers[0].d_in, d_out

    def ending(self, x: Tensor, mask: Tensor) -> Tensor:
        """The output at the last real step of each row, [B, 1, D'], and nothing that it does not depend on.

        That depends on every 2^(l-1)-th input of layer l, counted from the end, and on no others: each layer halves
        the line, so that all of them together cost about as much as two would at every step.
        """
        real = None
        if not bool(mask.all()):
            x, real = right_aligned(x, mask), right_aligned(mask, mask)
        layers: list[Any] = list(self.layers)
        wanted = [1]  # outputs of each layer, from the last to the first
        for layer in layers[:0:-1]:
            wanted.append(2 * wanted[-1] - 1 + (layer.receptive_field - 1) // layer.dilation)
        for layer, n in zip(layers, reversed(wanted), strict=True):
            stride = 1 if layer is layers[-1] else 2
            x = layer.thinned(x, real, n, stride)
            real = None if real is None else every(real, x.shape[1], stride)
        return x  # [B, 1, D']
