"""A decoder with a soft window that slides over the source: it reads a text from left to right while it writes.

    h^1_t = f(h^1_{t-1}, [x_t; w_{t-1}])
    (alpha^, beta^, kappa^) = W h^1_t + b,     alpha = exp(alpha^),  beta = exp(beta^)             eqs (48)-(50)
    kappa_t = kappa_{t-1} + exp(kappa^)                                                           eq. (51)
    phi(t, u) = sum_k alpha_k exp(-beta_k (kappa_k - u)^2)          u = 1 .. S                    eq. (46)
    w_t = sum_u phi(t, u) c_u                                                                     eq. (47)
    h^n_t = f(h^n_{t-1}, [x_t; w_t; h^{n-1}_t]),    y_t = [h^1_t; .. ; h^n_t]                      eqs (52)-(53)

Graves (2013), section 5.1; c is the source, K windows, kappa_0 = 0 and w_0 = 0. The window only moves forward, so the
alignment of what is written with the source is monotone. What the window needs is part of the state: (h^1, kappa, w).
Logarithms are bounded by LARGEST, so that nothing overflows. Noted as "attention": phi [B, 1, T, S], once a call,
divided by its sum over u, which the window itself is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal
from unrolled.core.compose import without_padding
from unrolled.core.errors import UsageError
from unrolled.core.state import Fixed, State
from unrolled.core.trace import note, tracing
from unrolled.layers.recurrent.cells import Cell
from unrolled.layers.recurrent.recurrent import Recurrent

LARGEST = 5.0  # of alpha^, beta^ and kappa^
PACE, WIDTH = 1 / 15, 1.0  # positions that a window moves in a tick before it is trained, and how wide it is about
NEEDS_SOURCE = "this decoder needs a source: start with the state that start(encoded, mask) returns"


class Read(NamedTuple):
    """A source that is read, made once."""

    c: Tensor  # [B, S, D], zero at padding
    real: Tensor  # [B, S] 1 or 0


class Windowed(NamedTuple):
    """What ticks change."""

    h: Tensor  # [B, N]
    kappa: Tensor  # [B, K]
    w: Tensor  # [B, D]


class WindowDecoder(Causal):
    """`cell` reads [x; w], `above` layers read [x; w; what is below]."""

    source: str | None = "source"

    def __init__(self, cell: Cell, d_in: int, d_source: int, n_windows: int, above: Sequence[Recurrent] = ()) -> None:
        super().__init__()
        if cell.input_size != d_in + d_source:
            raise UsageError(
                f"the cell has input width {cell.input_size}, but input and source have widths {d_in} and {d_source}"
            )
        self.cell, self.above = cell, nn.ModuleList(above)
        self.d_in, self.d_source, self.n_windows = d_in, d_source, n_windows
        self.window = nn.Linear(cell.output_size, 3 * n_windows)
        self.d_out = cell.output_size + sum(layer.d_out for layer in above)
        with torch.no_grad():
            self.window.weight.mul_(0.1)
            begun = torch.tensor([0.0, -2 * math.log(WIDTH), math.log(PACE)])
            self.window.bias.copy_(begun.repeat_interleave(n_windows))
            self.window.bias[:n_windows] -= math.log(n_windows)

    def start(self, source: Tensor, mask: Tensor) -> State:
        c = without_padding(source, mask).to(self.window.weight.dtype)  # [B, S, D]
        rows = c.shape[0]  # len would fix the number of rows of an export
        begun = Windowed(
            c.new_zeros(rows, self.cell.state_size), c.new_zeros(rows, self.n_windows), c.new_zeros(rows, self.d_source)
        )
        return Fixed(Read(c, mask.to(c))), begun, tuple(None for _ in self.above)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        if state is None:
            raise UsageError(NEEDS_SOURCE)
        fixed, (h, kappa, w), above = state
        c, real = fixed.tree
        x = x.to(h.dtype)
        u = torch.arange(1, c.shape[1] + 1, device=c.device, dtype=c.dtype)  # [S]
        states, windows, phis = [], [], []
        for x_t in x.unbind(1):
            h = self.cell(torch.cat([x_t, w], -1), h)
            a, b, k = self.window(self.cell.output(h)).clamp(max=LARGEST).chunk(3, -1)  # [B, K]
            kappa = kappa + k.exp()
            bells = (a.unsqueeze(-1) - b.exp().unsqueeze(-1) * (kappa.unsqueeze(-1) - u).square()).exp()  # [B, K, S]
            phi = bells.sum(1) * real  # [B, S]
            w = torch.bmm(phi.unsqueeze(1), c).squeeze(1)  # [B, D]
            states.append(h)
            windows.append(w)
            phis.append(phi)
        if tracing():
            seen = torch.stack(phis, 1).unsqueeze(1)  # [B, 1, T, S]
            note("attention", seen / seen.sum(-1, keepdim=True).clamp_min(torch.finfo(seen.dtype).tiny))
        below = self.cell.output(torch.stack(states, 1))  # [B, T, N]
        along, ys, after = torch.cat([x, torch.stack(windows, 1)], -1), [below], []
        for layer, before in zip(self.above, above, strict=True):
            below, last = layer(torch.cat([along, below], -1), before)
            ys.append(below)
            after.append(last)
        return torch.cat(ys, -1), (fixed, Windowed(h, kappa, w), tuple(after))

    def serial_steps(self, length: int) -> int:
        return length * (1 + len(self.above))
