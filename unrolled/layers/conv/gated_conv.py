"""A stack of gated causal convolutions, the body of WaveNet, with one state for all its layers.

    a_l = W_l * x_l + s_l                       s_l: what a condition adds
    z_l = tanh(a_l^f) . sigmoid(a_l^g)          a_l = (a_l^f, a_l^g)
    x_{l+1} = x_l + R_l z_l

* is a causal convolution of dilation d_l. Van den Oord et al. (2016), eqs (2) and (3). The weights of all layers stand
in one tensor, and so do their pasts: a tick gathers all that is older than itself in one go, and only what hangs on the
layer below is left for the loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, zip_longest
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.core.errors import UsageError
from unrolled.core.state import State
from unrolled.core.trace import note, tracing
from unrolled.layers.conv.conv import Past, convolve, in_order, in_step, may_reuse, newest


class Pasts(NamedTuple):
    """The last (k-1) d_l inputs of every layer."""

    taps: Tensor  # [B, sum of d_l, (k-1) C]: the taps of each layer (`conv.Past`), one layer below the other
    clock: Tensor  # [B] the phase of layer l is clock mod d_l


def gated(a: Tensor) -> Tensor:
    """z = tanh(a^f) . sigmoid(a^g)"""
    f, g = a.chunk(2, dim=-1)
    return torch.tanh(f) * torch.sigmoid(g)


class Unit(NamedTuple):
    """One layer: a_l [B, T, 2 C] and x_l [B, T, C] -> z_l and x_{l+1} [B, T, C]."""

    W: Tensor  # [2 C, k, C]
    b: Tensor  # [2 C]
    share: Tensor | None  # [B, T or 1, 2 C]
    residual: tuple[Tensor, Tensor] | None  # R [C, C] and its bias [C]

    def __call__(self, a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        a = a if self.share is None else a + self.share
        if tracing():
            f, g = a.chunk(2, dim=-1)
            note("gates", {"gate": torch.sigmoid(g), "filter": torch.tanh(f)})
        z = gated(a)
        return z, x if self.residual is None else x + F.linear(z, *self.residual)


class GatedStack(nn.Module):
    """x [B, T, C] -> all z_l side by side [B, T, L C]; the last layer has no R, which would lead nowhere."""

    def __init__(self, width: int, kernel: int, dilations: Sequence[int], dropout: float = 0.0) -> None:
        super().__init__()
        C, L = width, len(dilations)
        self.width, self.kernel, self.dilations = C, kernel, tuple(dilations)
        self.period = math.lcm(*dilations)
        self.weight = nn.Parameter(torch.empty(L, kernel, 2 * C, C))  # W_l by tap, filters above gates
        self.bias = nn.Parameter(torch.empty(L, 2 * C))
        self.residual_weight = nn.Parameter(torch.empty(L - 1, C, C))  # R_l
        self.residual_bias = nn.Parameter(torch.empty(L - 1, C))
        for parameter, fan_in in zip(self.parameters(), (kernel * C, kernel * C, C, C), strict=True):
            nn.init.uniform_(parameter, -(fan_in**-0.5), fan_in**-0.5)
        self.dropout = nn.Dropout(dropout)  # on what enters each convolution
        self.receptive_field = 1 + (kernel - 1) * sum(dilations)

    def serial_steps(self, length: int) -> int:
        return len(self.dilations)

    def tick_multiply_adds(self, position: int) -> int:
        return self.weight.numel() + self.residual_weight.numel()

    def initial_state(self, x: Tensor) -> Pasts:
        B = x.shape[0]
        taps = x.new_zeros(B, sum(self.dilations), (self.kernel - 1) * self.width)
        return Pasts(taps, torch.zeros(B, dtype=torch.long, device=x.device))

    def forward(self, x: Tensor, state: State | None, shares: Tensor | None) -> tuple[Tensor, State]:
        """shares [B, T or 1, L, 2 C] is what conditions add to each a_l."""
        pasts: Pasts = self.initial_state(x) if state is None else self.checked(state)
        if not tracing() and may_reuse(pasts.taps, x) and (n := in_step(pasts.clock)) is not None:
            return self._tick(x, pasts, n, shares), pasts
        zs, after = [], []
        for unit, taps, d in zip(self._units(shares), pasts.taps.split(self.dilations, dim=1), self.dilations):
            line = self.dropout(x) if self.training else x
            if self.kernel > 1:
                line = torch.cat([in_order(Past(taps, pasts.clock % d), self.kernel), line], dim=1)
                after.append(newest(line, self.kernel, d))
            z, x = unit(convolve(line, unit.W, unit.b, d), x)
            zs.append(z)
        state = Pasts(torch.cat(after, dim=1) if after else pasts.taps, torch.zeros_like(pasts.clock))
        return torch.cat(zs, dim=-1), state

    def checked(self, pasts: Pasts) -> Pasts:
        """A state of this stack's own widths."""
        d, n = sum(self.dilations), (self.kernel - 1) * self.width
        if pasts.taps.shape[1:] != (d, n) or pasts.clock.dim() != 1:
            raise UsageError(
                f"expected taps and clock of a gated stack of shapes [B, {d}, {n}] and [B], found "
                f"{list(pasts.taps.shape)} and {list(pasts.clock.shape)}"
            )
        return pasts

    def _units(self, shares: Tensor | None) -> list[Unit]:
        residual = zip(self.residual_weight.unbind(), self.residual_bias.unbind())
        added = [None] * len(self.dilations) if shares is None else shares.unbind(2)
        W = self.weight.transpose(1, 2)  # [L, 2 C, k, C]
        return [Unit(*parts) for parts in zip_longest(W.unbind(), self.bias.unbind(), added, residual)]

    def _tick(self, x: Tensor, pasts: Pasts, n: int, shares: Tensor | None) -> Tensor:
        """One tick of rows that all have the clock n, in the memory of the state."""
        begins = accumulate(self.dilations[:-1], initial=0)
        rows = torch.tensor([begin + n % d for begin, d in zip(begins, self.dilations)], device=x.device)  # [L]
        old = pasts.taps.index_select(1, rows)  # [B, L, (k-1) C]
        a = self.bias[:, None] if shares is None else (self.bias + shares[:, 0]).transpose(0, 1)  # [L, 1 or B, 2 C]
        for W, tap in zip(self.weight[:, :-1].unbind(1), old.transpose(0, 1).split(self.width, dim=-1)):
            a = torch.baddbmm(a, tap, W.mT)  # [L, B, 2 C]: all but the newest tap, of all layers at once
        zs, inputs, x = [], [], x.squeeze(1)
        residual = zip(self.residual_weight.mT, self.residual_bias)
        for a_l, W, parts in zip_longest(a, self.weight[:, -1].mT, residual):
            inputs.append(self.dropout(x) if self.training else x)
            zs.append(gated(torch.addmm(a_l, inputs[-1], W)))  # [B, C]
            x = x if parts is None else torch.addmm(x + parts[1], zs[-1], parts[0])
        if self.kernel > 1:
            new = torch.cat([old[:, :, self.width :], torch.stack(inputs, dim=1)], dim=-1)  # [B, L, (k-1) C]
            pasts.taps.index_copy_(1, rows, new)
        pasts.clock.fill_((n + 1) % self.period)
        return torch.cat(zs, dim=-1).unsqueeze(1)  # [B, 1, L C]
