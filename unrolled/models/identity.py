"""Identity, a baseline: the series is left unchanged.

y_t = x_t
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from unrolled.core.causal import Encoder
from unrolled.core.compose import without_padding
from unrolled.core.config import Config as Base
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.task import Known


class Config(Base):
    """There is nothing to choose."""


class Identity(Encoder):
    """x [B, T, D] -> its first channels unchanged [B, T, D']; where more are asked for, these are 0, their mean."""

    d_in: int

    receptive_field = 1

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.d_in, self.d_out = d_in, d_out

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        y = F.pad(x, (0, self.d_out - self.d_in))  # [B, T, D'], a negative number of channels is cut off
        return without_padding(y, mask), mask

    def solve(self, batches: Known, held_out: Known = ()) -> None:
        """There is nothing to learn."""


def make(config: Config, sizes: Sizes) -> Identity:
    return Identity(sizes.d_in, sizes.d_out)


MODEL = ModelSpec(
    summary="baseline: the series is left unchanged",
    kind="encoder",
    config=Config,
    tiny=Config(),
    make=make,
    reference="doing nothing",
    aliases=("nothing", "do-nothing"),
    reads=("numbers",),
    outputs=("each",),
    owns_head=True,
    closed_form=("series",),
)
