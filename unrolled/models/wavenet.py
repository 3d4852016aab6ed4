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

from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from unrolled.core import config
from unrolled.core.causal import Causal
from unrolled.core.errors import UsageError
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.state import Fixed, State
from unrolled.core.trace import note, tracing
from unrolled.layers.conv.conv import CausalConv, Past, is_row
from unrolled.layers.conv.gated_conv import GatedStack, Pasts
from unrolled.layers.recurrent.tick import Array, Weights, affine, arrays, bare


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
    """Kernel size of each convolution."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the input of each gated unit."""
    d_global: int = Field(0, ge=0)
    """Width of a global condition, such as a speaker; 0: none."""
    d_local: int = Field(0, ge=0)
    """Number of last input columns that are a local condition; 0: none."""

    def resized(self, width: int) -> Config:
        """The skip path stays four times as wide as the residual one."""
        return self.updated({"d_model": width, "d_skip": 4 * width})


class WaveNet(Causal):
    """The state is (what the global condition adds to each a_l, as Fixed; the entry's past; the stack's)."""

    def __init__(self, config: Config, d_in: int) -> None:
        super().__init__()
        dilations = [2**i for i in range(config.n_dilations)] * config.n_stacks
        C, L = config.d_model, len(dilations)
        if d_in <= config.d_local:
            raise UsageError(f"invalid value d_local = {config.d_local}: expected less than the input width {d_in}")
        self.source = "global" if config.d_global else None  # what `start` takes
        self.d_in, self.d_local, self.d_out, self.n_layers = d_in, config.d_local, config.d_skip, L
        self.entry = CausalConv(d_in - config.d_local, C, config.kernel)
        self.stack = GatedStack(C, config.kernel, dilations, config.dropout)  # W_l, R_l
        self.globals = nn.Linear(config.d_global, L * 2 * C, bias=False) if config.d_global else None  # all U_l
        self.locals = nn.Linear(config.d_local, L * 2 * C, bias=False) if config.d_local else None  # all V_l
        self.skip = nn.Linear(L * C, config.d_skip)  # all S_l
        self.last = nn.Linear(config.d_skip, config.d_skip)  # Q
        self.receptive_field = config.kernel - 1 + self.stack.receptive_field

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
        if not self.training and not tracing() and is_row(x, (entry, stack)):
            parts = self._parts(x.dtype)
            if all(weights is not None for weights in parts.values()):
                return self._row(x, fixed, entry, stack, parts), state  # type: ignore[arg-type]
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

    def _parts(self, dtype: torch.dtype) -> dict[str, Weights | None]:
        """The weights of all parts that one tick of one row does by itself; None: one that has to be called."""
        part: dict[str, Any] = self._modules  # self.stack would cost a microsecond each time
        stack = part["stack"]
        found: dict[str, Weights | None] = {
            "entry": part["entry"].weights(dtype),
            "stack": arrays(stack, GatedStack, dtype, *GatedStack.named) if bare(stack.dropout, nn.Dropout) else None,
        }
        for name in ("skip", "last", "locals"):
            if part.get(name) is not None:
                found[name] = arrays(part[name], nn.Linear, dtype, "weight")
        return found

    def _row(self, x: Tensor, fixed: State, entry: Past, stack: Pasts, parts: dict[str, Weights]) -> Tensor:
        """One tick of one row without gradients: the same through numpy, in the memory of the state."""
        v = x.numpy()[0, 0]  # [D]
        part: dict[str, Any] = self._modules
        shares: Array | None = None  # [L, 2 C]
        if self.globals is not None:
            shares = fixed.tree.detach().to(x.dtype).numpy()[0]
        if self.locals is not None:
            v, c = v[: -self.d_local], v[-self.d_local :]
            local = affine(parts["locals"], c).reshape(self.n_layers, -1)
            shares = local if shares is None else shares + local
        v = part["entry"].row(v, part["entry"].checked(entry), parts["entry"])  # [C]
        z = part["stack"].row(v, part["stack"].checked(stack), shares, parts["stack"])  # [L, C]
        y = affine(parts["skip"], z.ravel())
        y = affine(parts["last"], np.maximum(y, 0, out=y))
        return torch.from_numpy(np.maximum(y, 0, out=y)[None, None])  # [1, 1, d_skip]


def make(config: Config, sizes: Sizes) -> WaveNet:
    """A condition that the task puts beside the input is local."""
    if sizes.d_beside and not config.d_local:
        config = config.updated({"d_local": sizes.d_beside})
    return WaveNet(config, sizes.d_in)


MODEL = ModelSpec(
    summary="gated causal convolutions with residual and skip paths",
    kind="causal",
    config=Config,
    tiny=Config(d_model=3, d_skip=4, n_dilations=2, n_stacks=2, d_global=2, d_local=1),
    make=make,
    reference="van den Oord et al. 2016",
    preset="standard",
    resize=Config.resized,
)
