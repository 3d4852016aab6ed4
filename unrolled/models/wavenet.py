"""WaveNet: gated causal convolutions with residual and skip paths.

    a_l = W_l * x_l + U_l h + V_l c                   filter and gate (a^f, a^g) at once
    z_l = tanh(a_l^f) . sigmoid(a_l^g)                eqs (2), (3)
    x_{l+1} = x_l + R_l z_l
    y = relu(Q relu(sum_l S_l z_l + s) + q)           the task's head makes logits of it

* is a causal convolution of dilation 1, 2, .., 2^(n-1) and again from 1 in the next stack; x_1 is a causal convolution
of the input. h [B, G] is a global condition, constant over the sequence; c_t is a local one, the last `d_local` columns
of the input (`layers.conditioning` puts them there). Van den Oord et al. (2016). The sum over skips is one product with
all z_l side by side, and the last block has no residual path, which would lead nowhere.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from unrolled.core import config
from unrolled.core.causal import Causal
from unrolled.core.errors import UsageError
from unrolled.core.state import Fixed, State
from unrolled.core.trace import note, tracing
from unrolled.layers.conv import CausalConv, is_row
from unrolled.layers.tick import Array, affine, sigmoid_

KIND = "causal"
REFERENCE = "van den Oord et al. 2016"


class Config(config.Config):
    d_model: int = Field(64, ge=1)
    """Channels of the residual path and of each gated unit."""
    d_skip: int = Field(256, ge=1)
    """Channels of the skip path and of the output."""
    n_dilations: int = Field(8, ge=1)
    """Layers per stack: dilations 1, 2, .., 2^(n-1)."""
    n_stacks: int = Field(1, ge=1)
    """Stacks."""
    kernel: int = Field(2, ge=1)
    """Taps of each convolution."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the input of each gated unit."""
    d_global: int = Field(0, ge=0)
    """Width of a global condition, such as a speaker; 0: none."""
    d_local: int = Field(0, ge=0)
    """How many of the input's last columns are a local condition; 0: none."""


TINY = Config(d_model=3, d_skip=4, n_dilations=2, n_stacks=2, d_global=2, d_local=1)


class WaveNet(Causal):
    """The state is (the global condition's share in each a_l, as Fixed; the states of all convolutions)."""

    def __init__(self, config: Config, d_in: int) -> None:
        super().__init__()
        dilations = [2**i for i in range(config.n_dilations)] * config.n_stacks
        C, L = config.d_model, len(dilations)
        self.source = "global" if config.d_global else None  # what `start` takes
        self.d_model, self.d_local, self.d_out, self.n_layers = C, config.d_local, config.d_skip, L
        if d_in <= config.d_local:
            raise UsageError(f"d_local = {config.d_local} leaves nothing of an input of width {d_in}")
        self.d_in, self.dropout = d_in, nn.Dropout(config.dropout)
        self.entry = CausalConv(d_in - config.d_local, C, config.kernel)
        self.gated = nn.ModuleList(CausalConv(C, 2 * C, config.kernel, d) for d in dilations)  # W_l
        self.globals = nn.Linear(config.d_global, L * 2 * C, bias=False) if config.d_global else None  # all U_l
        self.locals = nn.Linear(config.d_local, L * 2 * C, bias=False) if config.d_local else None  # all V_l
        self.residual = nn.ModuleList(nn.Linear(C, C) for _ in dilations[1:])  # R_l
        self.skip = nn.Linear(L * C, config.d_skip)  # all S_l
        self.last = nn.Linear(config.d_skip, config.d_skip)  # Q
        self.receptive_field = 1 + (config.kernel - 1) * (1 + sum(dilations))

    def start(self, source: Tensor, mask: Tensor | None = None) -> State:
        """The state before the first tick under a global condition [B, G]."""
        if self.globals is None:
            raise UsageError("this wavenet takes no global condition; give it d_global")
        if source.dim() != 2 or source.shape[1] != self.globals.in_features:
            raise UsageError(f"a global source has the shape [B, {self.globals.in_features}], not {list(source.shape)}")
        shares = self.globals(source).unflatten(1, (self.n_layers, -1))  # [B, L, 2 C]
        return self._begin(shares)

    def _begin(self, shares: State) -> State:
        return Fixed(shares), (None,) * (self.n_layers + 1)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        if state is None:
            state = self._begin(
                () if self.globals is None else x.new_zeros(x.shape[0], self.n_layers, 2 * self.d_model)
            )
        elif not tracing() and not self.training and is_row(x, state[1]):
            return self._row(x, state), state
        fixed, (before, *befores) = state
        shares: list[Tensor | None] = [None] * self.n_layers
        if self.locals is not None:
            x, c = x[..., : -self.d_local], x[..., -self.d_local :]
            shares = list(self.locals(c).chunk(self.n_layers, dim=-1))  # L times [B, T, 2 C]
        if self.globals is not None:
            shares = [u[:, None] if v is None else u[:, None] + v for u, v in zip(fixed.tree.unbind(1), shares)]
        x, after = self.entry(x, before)  # [B, T, C]
        afters, zs = [after], []
        for conv, share, before, residual in zip_longest(self.gated, shares, befores, self.residual):
            a, after = conv(self.dropout(x) if self.training else x, before)  # [B, T, 2 C]
            f, g = (a if share is None else a + share).chunk(2, dim=-1)
            z = torch.tanh(f) * torch.sigmoid(g)  # [B, T, C]
            if residual is not None:
                x = x + residual(z)
            afters.append(after)
            zs.append(z)
        note("gated", zs)
        y = torch.relu(self.last(torch.relu(self.skip(torch.cat(zs, dim=-1)))))  # [B, T, d_skip]
        return y, (fixed, tuple(afters))

    def _row(self, x: Tensor, state: State) -> Tensor:
        """One tick of one row without gradients: the same through numpy, in the memory of the state."""
        fixed, (before, *befores) = state
        C, v = self.d_model, x.numpy()[0, 0]  # [D]
        shares: Array | None = None
        if self.locals is not None:
            v, c = v[: -self.d_local], v[-self.d_local :]
            shares = affine(self.locals, c).reshape(self.n_layers, -1)  # [L, 2 C]
        if self.globals is not None:
            constant = fixed.tree.detach().to(x.dtype).numpy()[0]  # [L, 2 C]
            shares = constant if shares is None else shares + constant
        v = self.entry.row(v, before)  # [C]
        z = np.empty((self.n_layers, C), v.dtype)
        blocks: Any = zip_longest(self.gated, befores, self.residual)
        for layer, (conv, past, residual) in enumerate(blocks):
            a = conv.row(v, past)  # [2 C]
            if shares is not None:
                a += shares[layer]
            f, g = np.tanh(a[:C]), a[C:]
            sigmoid_(g)
            np.multiply(f, g, out=z[layer])
            if residual is not None:
                v = v + affine(residual, z[layer])
        y = np.maximum(affine(self.last, np.maximum(affine(self.skip, z.reshape(-1)), 0)), 0)
        return torch.from_numpy(y[None, None])  # [1, 1, d_skip]


def make(config: Config, d_in: int, d_out: int) -> WaveNet:
    return WaveNet(config, d_in)
