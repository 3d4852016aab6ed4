"""WaveNet: gated causal convolutions with residual and skip paths.

Layers of dilation 1, 2, .., 2^(n-1), and again from 1 in each further stack, end in units tanh(a^f) . sigmoid(a^g). All
of them reach the output by their skip paths; two layers with relu follow. Van den Oord et al. (2016), whose equations
stand with the layer, in layers/conv/wave.py.
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
