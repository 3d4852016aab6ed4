"""Hydra: which of competing fixed filters fits best at each step, counted, into a multilayer perceptron.

    u = (x - m) / s                              each channel of each series at mean 0 and standard deviation 1
    v_t = u_t - u_{t-1}
    C_{g,j,t} = sum_i w_{g,j,i} z_{t + i r}      z = u or v, K filters j in each group g, dilations r = 1, 2, 4, ..
    a_{g,j} = 1/T sum_t C_{g,j,t} [j = argmax_k C_{g,k,t}]
    b_{g,j} = 1/T sum_t [j = argmin_k C_{g,k,t}]
    f = LN(sqrt(max(a, 0)), sqrt(b)) -> perceptron

Dempster, Schmidt & Webb (2023). Filters of 9 numbers are drawn once, with mean 0 and sum of sizes 1, and are not
trained; of several channels each group sums some. We differ from the paper where it solves ridge regression on features
that are standardised over the training data: here a perceptron is trained, behind a normalisation of each example.
Mean and deviation are those of the series itself, so nothing is known of other series.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from unrolled.core.causal import Encoder
from unrolled.core.compose import without_padding
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.parts.perceptron import PerceptronConfig, perceptron

WIDTH = 9  # of a filter
ROUNDING = 4 * torch.finfo(torch.float32).eps  # of a level: a standard deviation below that is no shape


class Config(PerceptronConfig):
    n_groups: int = Field(8, ge=1)
    """Number of groups of filters for each dilation."""
    n_filters: int = Field(8, ge=2)
    """K: filters in a group, of which one fits best at each step."""
    n_dilations: int = Field(7, ge=1, le=16)
    """Number of dilations 1, 2, 4, ...; the last of 7 spans 513 steps."""


class Hydra(Encoder):
    """Series x [B, T, D] with mask [B, T] -> [B, 1, d_hidden] and a mask of ones [B, 1]."""

    filters: Tensor  # [R, 2, G, K, 9]
    channels: Tensor  # [R, 2, G, D] 1 where a channel is summed

    def __init__(self, config: Config, d_in: int) -> None:
        super().__init__()
        R, G, K = config.n_dilations, config.n_groups, config.n_filters
        place = torch.empty(0).device  # computing on paper would load the compiler
        w = torch.randn(R, 2, G, K, WIDTH, device="cpu")
        w = w - w.mean(-1, keepdim=True)
        self.register_buffer("filters", (w / w.abs().sum(-1, keepdim=True)).to(place))
        few = (d_in + 1) // 2 if d_in > 2 else d_in
        rank = torch.rand(R, 2, G, d_in, device="cpu").argsort(-1).argsort(-1)
        self.register_buffer("channels", (rank < few).float().to(place))
        self.norm = nn.LayerNorm(4 * R * G * K)
        self.perceptron = perceptron(config, 4 * R * G * K)
        self.d_in, self.d_out = d_in, self.perceptron.d_out

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        u = scores(x, mask)  # [B, T, D]
        v = without_padding(F.pad(u, (0, 0, 1, 0))[:, :-1], mask)
        v = torch.cat([torch.zeros_like(u[:, :1]), (u - v)[:, 1:]], 1)  # the first step has none before it
        both = (u.transpose(1, 2), without_padding(v, mask).transpose(1, 2))  # [B, D, T]
        f = torch.cat([self._counted(z, mask, r, i) for r in range(len(self.filters)) for i, z in enumerate(both)], 1)
        return self.perceptron(self.norm(f)).unsqueeze(1), mask.new_ones(mask.shape[0], 1)

    def _counted(self, z: Tensor, mask: Tensor, r: int, i: int) -> Tensor:
        """The features of one dilation, [B, 2 G K]."""
        mixed = torch.einsum("gd,bdt->bgt", self.channels[r, i], z)  # [B, G, T]
        reach, real = WIDTH // 2 << r, mask[:, None].to(z)  # [B, 1, T]
        around = F.pad(mixed, (reach, reach)).unfold(2, 2 * reach + 1, 1)[..., :: 1 << r]  # [B, G, T, 9]
        C = torch.einsum("bgti,gki->bgkt", around, self.filters[r, i])  # [B, G, K, T]
        n = mask.sum(1).clamp(min=1)[:, None, None].to(C)  # [B, 1, 1]
        most, least = C.max(2), C.min(2).indices  # [B, G, T]; argmin is many times slower
        none = C.new_zeros(C.shape[:3])  # [B, G, K]
        a = none.scatter_add(2, most.indices, most.values * real) / n
        b = none.scatter_add(2, least, real.expand_as(least)) / n
        return torch.cat([(a.clamp(min=0) + SMALL).sqrt(), (b + SMALL).sqrt()], 1).flatten(1)

    def serial_steps(self, length: int) -> int:
        return 1 + self.perceptron.serial_steps(1)


SMALL = 1e-6  # under a root, whose slope is then finite


def scores(x: Tensor, mask: Tensor) -> Tensor:
    """Each channel of each series [B, T, D] at mean 0 and standard deviation 1; one that never varies is 0."""
    n = mask.sum(1).clamp(min=1)[:, None, None].double()  # [B, 1, 1]
    z = without_padding(x, mask).double()
    mean = z.sum(1, keepdim=True) / n
    centred = without_padding(z - mean, mask)
    variance = centred.square().sum(1, keepdim=True) / n
    varies = variance > (ROUNDING * mean).square()
    scale = torch.where(varies, variance, 1.0).sqrt()  # of which the slope is finite
    return torch.where(varies, centred / scale, 0.0).to(x)


def make(config: Config, sizes: Sizes) -> Hydra:
    return Hydra(config, sizes.d_in)


MODEL = ModelSpec(
    summary="counts of which fixed filters fit best, on z-scores and differences of series, into a perceptron",
    kind="encoder",
    config=Config,
    tiny=Config(d_hidden=5, n_groups=2, n_filters=3, n_dilations=2),
    make=make,
    reference="Dempster, Schmidt & Webb 2023",
    reads=("numbers",),
    outputs=("whole",),
    preset="standard",
    recipe={"lr": 1e-3},
    resize=Config.resized,
)
