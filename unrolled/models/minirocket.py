"""MiniRocket: features of short fixed convolutions with ridge regression; fitted in closed form.

    C_{k,t} = sum_{j=-4}^{4} w_{k,j} x_{t+j r}        84 filters w_k: six times -1 and three times 2, in all orders
    f = 1/T sum_t [C_{k,t} > b]                       for dilations r from 1 to as far as a series reaches
    y = W (f - m) / s + c,   W = argmin sum_n |y_n - y(f_n)|^2 + a |W|^2

Dempster, Schmidt & Webb (2021). Thresholds b are quantiles of C in training series drawn by the seed; every second pair
of a filter and a dilation reads zeros around a series, the others keep inside. Of several channels each such pair sums
some, drawn by the seed too. W is fitted in closed form: a is the one of ten values whose error on training
examples left out one by one is smallest, and from the same errors comes k, where p = softmax(k y) of the classes.
"""

from __future__ import annotations

from itertools import combinations

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from unrolled.core.config import Config as Base
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.task import Known
from unrolled.layers.counting import ridge
from unrolled.layers.counting.neighbours import are_sets, resampled
from unrolled.layers.memory.saved_tables import Stored

WIDTH = 9  # of a filter
FILTERS = torch.tensor([[2.0 if j in three else -1.0 for j in range(WIDTH)] for three in combinations(range(WIDTH), 3)])
RIDGES = torch.logspace(-3, 3, 10, dtype=torch.float64)
SHARPNESS = torch.logspace(-1, 2, 31, dtype=torch.float64)
GOLDEN = (5**0.5 + 1) / 2  # its multiples, less whole numbers, are spread evenly however many are taken
NUMBERS = 1 << 23  # outputs of filters that are in memory at once


class Config(Base):
    features: int = Field(10_000, ge=len(FILTERS))
    """Number of thresholds, rounded down to a multiple of 84."""
    dilations: int = Field(32, ge=1)
    """Maximum number of dilations per filter."""
    length: int = Field(2000, ge=WIDTH)
    """Maximum length that series are resampled to."""
    seed: int = Field(0, ge=0)
    """Random seed of the training series and channels that are drawn."""


class MiniRocket(Stored):
    """Series x [B, T, D] with mask [B, T] -> the answer [B, 1, C]."""

    d_in: int

    TABLES = ("steps", "channels", "thresholds", "mean", "scale", "weight", "bias")
    steps: Tensor  # [] L, that series are brought to
    channels: Tensor  # [R, 84, D] 1 where a channel is summed
    thresholds: Tensor  # [84, Q], those of all dilations after each other
    mean: Tensor  # [84 Q]
    scale: Tensor  # [84 Q]
    weight: Tensor  # [C, 84 Q]
    bias: Tensor  # [C]

    def __init__(self, config: Config, d_in: int, d_out: int) -> None:
        super().__init__()
        self.config, self.d_in, self.d_out = config, d_in, d_out
        self.n_thresholds = config.features // len(FILTERS)
        n = len(FILTERS) * self.n_thresholds
        begins = {
            "steps": torch.tensor(float(WIDTH)), "channels": torch.ones(1, len(FILTERS), d_in),
            "thresholds": torch.zeros(len(FILTERS), self.n_thresholds), "mean": torch.zeros(n),
            "scale": torch.ones(n), "weight": torch.zeros(d_out, n), "bias": torch.zeros(d_out),
        }  # fmt: skip
        for name, table in begins.items():
            self.register_buffer(name, table)

    def fault(self, tables: dict[str, Tensor]) -> str:
        own = {name: getattr(self, name).shape for name in self.TABLES if name != "channels"}
        fits = all(tables[name].shape == shape for name, shape in own.items()) and float(tables["steps"]) >= WIDTH
        if fits:
            shape = (len(self._dilations(int(tables["steps"]))), len(FILTERS), self.d_in)
            fits = tables["channels"].shape == shape
        return "" if fits else "the sizes of its tables do not match"

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        z = (self._features(resampled(x, mask, int(self.steps))) - self.mean) / self.scale  # [B, F]
        y = F.linear(z, self.weight, self.bias)  # [B, C]
        return y.unsqueeze(1).to(x), mask.new_ones(mask.shape[0], 1)

    def solve(self, batches: Known, held_out: Known = ()) -> None:
        """From series, mask and answers (classes [B], sets or numbers [B, C]) of all examples."""
        held = list(batches)
        lengths = torch.cat([mask.sum(1) for _, mask, _ in held])
        L = max(WIDTH, min(int(lengths.median()), self.config.length))
        x = torch.cat([resampled(x, mask, L) for x, mask, _ in held])  # [n, L, D]
        y = torch.cat([y for _, _, y in held])
        random = torch.Generator().manual_seed(self.config.seed)
        self.keep({"steps": torch.tensor(float(L)), "channels": self._draw_channels(L, random)})
        self.keep({"thresholds": self._draw_thresholds(x, random)})
        features = self._features(x).double()  # [n, F]
        mean = features.mean(0)
        scale = (features - mean).norm(dim=0)
        scale = torch.where(scale > 1e-6, scale, 1.0)
        found = ridge.solve((features - mean) / scale, _targets(y, self.d_out), RIDGES)
        sharp = _sharpness(found.left_out, y)
        self.keep({"mean": mean, "scale": scale, "weight": sharp * found.weight, "bias": sharp * found.bias})

    def _dilations(self, L: int) -> list[tuple[int, int]]:
        """Each dilation and how many thresholds it has: as many for each doubling."""
        n = min(self.n_thresholds, self.config.dilations)
        reach = (L - 1) / (WIDTH - 1)
        found = (reach ** torch.linspace(0, 1, n, dtype=torch.float64)).floor().long()  # [n]
        dilations, counts = found.unique(return_counts=True)
        bounds = counts.cumsum(0) * self.n_thresholds // n  # where the thresholds of each end
        return list(zip(dilations.tolist(), bounds.diff(prepend=bounds.new_zeros(1)).tolist()))

    def _draw_channels(self, L: int, random: torch.Generator) -> Tensor:
        """[R, 84, D]: from one to nine channels, few more often than many."""
        shape = (len(self._dilations(L)), len(FILTERS))
        most = min(self.d_in, WIDTH)
        n = (most + 1) ** torch.rand(*shape, generator=random)  # [R, 84]
        rank = torch.rand(*shape, self.d_in, generator=random).argsort(-1).argsort(-1)  # [R, 84, D]
        return (rank < n.floor()[..., None]).float()

    def _draw_thresholds(self, x: Tensor, random: torch.Generator) -> Tensor:
        """[84, Q]: quantiles of what each filter makes of one of the series x [n, L, D]."""
        levels = (
            (torch.arange(1, self.thresholds.numel() + 1, dtype=torch.float64) * GOLDEN % 1).view(-1, len(FILTERS)).T
        )
        found, used = [], 0
        for i, (dilation, n) in enumerate(self._dilations(x.shape[1])):
            drawn = x[torch.randint(len(x), (len(FILTERS),), generator=random)]  # [84, L, D]
            mixed = torch.einsum("kd,kld->kl", self.channels[i].to(x), drawn)
            C = _filtered(mixed[None], dilation)[0].sort(1).values.double()  # [84, L]
            at = levels[:, used : used + n] * (C.shape[1] - 1)  # [84, n]
            low = at.floor().long()
            high = (low + 1).clamp(max=C.shape[1] - 1)
            found.append(C.gather(1, low).lerp(C.gather(1, high), at - low))
            used += n
        return torch.cat(found, 1).float()

    def _features(self, x: Tensor) -> Tensor:
        """How often each threshold is exceeded in series x [B, L, D]: [B, 84 Q]."""
        plan = self._dilations(x.shape[1])
        most = max(n for _, n in plan)
        rows = max(1, NUMBERS // (len(FILTERS) * most * x.shape[1]))
        return (
            torch.cat([self._features_of(some, plan) for some in x.split(rows)])
            if len(x)
            else x.new_zeros(0, len(self.mean))
        )

    def _features_of(self, x: Tensor, plan: list[tuple[int, int]]) -> Tensor:
        found, used = [], 0
        k = torch.arange(len(FILTERS), device=x.device)
        for i, (dilation, n) in enumerate(plan):
            C = _filtered(torch.einsum("kd,bld->bkl", self.channels[i].to(x), x), dilation)  # [B, 84, L]
            b = self.thresholds[:, used : used + n].to(x)[:, :, None]  # [84, n, 1]
            above = C.new_empty(len(x), len(FILTERS), n)
            padding = WIDTH // 2 * dilation
            for whole in (True, False):
                chosen = (k + i) % 2 == (0 if whole else 1)
                part = C[:, chosen] if whole else C[:, chosen, padding : C.shape[2] - padding]
                above[:, chosen] = (part[:, :, None] > b[chosen]).to(x).mean(-1)
            found.append(above)
            used += n
        return torch.cat(found, 2).flatten(1)


def _filtered(x: Tensor, dilation: int) -> Tensor:
    """Each of x [B, 84, L] by its own filter, with zeros around: [B, 84, L].

    The weights of a filter add up to 0, so a common offset cancels; in double precision nothing else is lost by that.
    """
    y = F.conv1d(
        x.double(), FILTERS[:, None].to(x.device, torch.float64), dilation=dilation,
        padding=WIDTH // 2 * dilation, groups=len(FILTERS),
    )  # fmt: skip
    return y.to(x)


def _targets(y: Tensor, d_out: int) -> Tensor:
    """Classes and sets as -1 and 1, numbers as they are: [n, C]."""
    if not y.is_floating_point():
        return 2.0 * F.one_hot(y, d_out) - 1
    return 2 * y - 1 if are_sets(y) else y


def _sharpness(said: Tensor, y: Tensor) -> float:
    """k, by which answers [n, C] are log-odds; 1 for numbers."""
    if not y.is_floating_point():
        misses = [float(F.cross_entropy(k * said, y)) for k in SHARPNESS]
    elif are_sets(y):
        misses = [float(F.binary_cross_entropy_with_logits(k * said, y.double())) for k in SHARPNESS]
    else:
        return 1.0
    return float(SHARPNESS[misses.index(min(misses))])


def make(config: Config, sizes: Sizes) -> MiniRocket:
    return MiniRocket(config, sizes.d_in, sizes.d_out)


MODEL = ModelSpec(
    summary="features of short fixed convolutions with ridge regression; fitted in closed form",
    kind="encoder",
    config=Config,
    tiny=Config(features=84, length=16),
    make=make,
    reference="Dempster, Schmidt & Webb 2021",
    aliases=("rocket",),
    reads=("numbers",),
    outputs=("whole",),
    owns_head=True,
    closed_form=("class", "classes", "numbers"),
)
