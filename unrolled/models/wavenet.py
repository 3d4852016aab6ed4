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

from pydantic import Field

from unrolled.core import config
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.conv.wave import WaveNet


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


def make(config: Config, sizes: Sizes) -> WaveNet:
    """A condition that the task puts beside the input is local."""
    if sizes.d_beside and not config.d_local:
        config = config.updated({"d_local": sizes.d_beside})
    dilations = [2**i for i in range(config.n_dilations)] * config.n_stacks
    sides = config.d_global, config.d_local
    return WaveNet(sizes.d_in, config.d_model, config.d_skip, dilations, config.kernel, config.dropout, *sides)


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
