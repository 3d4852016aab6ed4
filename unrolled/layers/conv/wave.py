"""The body of WaveNet: gated causal convolutions with residual and skip paths.

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

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal
from unrolled.core.errors import UsageError
from unrolled.core.state import Fixed, State
from unrolled.core.trace import note
from unrolled.layers.conv.conv import CausalConv
from unrolled.layers.conv.gated_conv import GatedStack


class WaveNet(Causal):
    """The state is (what the global condition adds to each a_l, as Fixed; the entry's past; the stack's)."""

    def __init__(
        self, d_in: int, d_model: int, d_skip: int, dilations: Sequence[int], kernel: int = 2, dropout: float = 0.0,
        d_global: int = 0, d_local: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        C, L = d_model, len(dilations)
        if d_in <= d_local:
            raise UsageError(f"invalid value d_local = {d_local}: expected less than the input width {d_in}")
        self.source = "global" if d_global else None  # what `start` takes
        self.d_in, self.d_local, self.d_out, self.n_layers = d_in, d_local, d_skip, L
        self.entry = CausalConv(d_in - d_local, C, kernel)
        self.stack = GatedStack(C, kernel, dilations, dropout)  # W_l, R_l
        self.globals = nn.Linear(d_global, L * 2 * C, bias=False) if d_global else None  # all U_l
        self.locals = nn.Linear(d_local, L * 2 * C, bias=False) if d_local else None  # all V_l
        self.skip = nn.Linear(L * C, d_skip)  # all S_l
        self.last = nn.Linear(d_skip, d_skip)  # Q
        self.receptive_field = kernel - 1 + self.stack.receptive_field

    def start(self, source: Tensor, mask: Tensor | None = None) -> State:
        """The state before the first tick under a global condition [B, G]."""
        if self.globals is None:
            raise UsageError("this wavenet has no global condition; set d_global")
        if source.dim() != 2 or source.shape[1] != self.globals.in_features:
            raise UsageError(f"a global source has the shape [B, {self.globals.in_features}], not {list(source.shape)}")
        return Fixed(self.globals(source).unflatten(1, (self.n_layers, -1))), None, None  # [B, L, 2 C]

    def _begin(self, x: Tensor) -> State:
        if self.globals is None:
            return (), None, None
        return self.start(x.new_zeros(x.shape[0], self.globals.in_features))

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        fixed, entry, stack = self._begin(x) if state is None else state
        if self.globals is not None and fixed.tree.shape[1:] != (self.n_layers, 2 * self.stack.width):
            raise UsageError(
                f"this state belongs to another wavenet: its global condition has shape {list(fixed.tree.shape)}"
            )
        shares = None  # [B, T or 1, L, 2 C]
        if self.globals is not None:
            shares = fixed.tree[:, None]
        if self.locals is not None:
            x, c = x[..., : -self.d_local], x[..., -self.d_local :]
            local = self.locals(c).unflatten(2, (self.n_layers, -1))  # [B, T, L, 2 C]
            shares = local if shares is None else shares + local
        x, entry = self.entry(x, entry)  # [B, T, C]
        z, stack = self.stack(x, stack, shares)  # [B, T, L C]
        note("gated", z)
        return torch.relu(self.last(torch.relu(self.skip(z)))), (fixed, entry, stack)  # [B, T, d_skip]
