"""Naive forecasts, baselines that are not fitted.

    last      y_{t+h} = y_t
    seasonal  y_{t+h} = y_{t+h-m}, with as many more seasons m taken off as it needs to lie in the past
    drift     y_{t+h} = y_t + h (y_t - y_1) / (t - 1), the line through the first and the last value
    mean      y_{t+h} = (y_1 + ... + y_t) / t

Before a whole season was read `seasonal` is `last`. Of missing values the last observed one is held, one season ago
where there is one; drift and mean leave them out. Before the first observation the forecast is 0.

Hyndman & Athanasopoulos (2021), section 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from unrolled.core import config
from unrolled.core.causal import Causal
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.state import State
from unrolled.layers.counting.forecaster import Apart, Span
from unrolled.layers.counting.held import Held, held_after, hold, nothing_held, repeated


class Config(config.Config):
    method: Literal["last", "seasonal", "drift", "mean"] = "last"
    """Last value; value of the last season; line through the first and last value (drift); mean of all values so
    far."""
    season: int = Field(0, ge=0)
    """Number of steps per season, for the method seasonal: 12 for months, 24 for hours; 1: no season; 0: the season of
    the data."""


class Naive(Causal):
    """Single series x [R, T, 2] (value, whether observed) -> [R, T, H]; there is nothing to fit."""

    d_in = 2

    def __init__(self, horizon: int) -> None:
        super().__init__()
        self.horizon = self.d_out = horizon

    def solve(self, spans: Sequence[Span], held_out: Sequence[Span] = ()) -> dict[str, Any]:
        """There is nothing to learn."""
        return {}


class Repeated(Naive):
    """The last value or, with a season, the last season; the state is what is repeated."""

    def __init__(self, horizon: int, season: int) -> None:
        super().__init__(horizon)
        self.season = season

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        before = nothing_held(x, self.season) if state is None else state
        line, clock = hold(x[..., 0], x[..., 1] > 0.5, before, self.season)
        return repeated(line, clock, self.season, self.horizon), held_after(line, clock, self.season)


class Ends(NamedTuple):
    """The two values that a line goes through."""

    last: Held
    first: Tensor  # [R]
    age: Tensor  # [R] steps since the last observation


class Drift(Naive):
    """y_t + h (y_t - y_1) / (t - 1); with missing values t is the last step that was observed."""

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        y, seen = x[..., 0], x[..., 1] > 0.5  # [R, T]
        before = Ends(nothing_held(x, 1), *x.new_zeros(2, x.shape[0])) if state is None else state
        line, clock = hold(y, seen, before.last)
        start = (clock == 1) & seen
        first = torch.where(start.any(1), torch.where(start, y, 0).sum(1), before.first)  # [R]
        t = torch.arange(1, y.shape[1] + 1, device=x.device)
        age = torch.where(seen.cumsum(1) > 0, t - torch.where(seen, t, 0).cummax(1).values, before.age[:, None] + t)
        n = (clock - 1 - age).clamp(min=1)  # [R, T] steps from the first observation to the last
        last = line[:, 1:]
        slope = torch.where(clock > 0, last - first[:, None], 0) / n
        h = torch.arange(1, self.horizon + 1, device=x.device) + age[..., None]  # [R, T, H]
        return last[..., None] + h * slope[..., None], Ends(held_after(line, clock, 1), first, age[:, -1].to(x))


class Mean(Naive):
    """The mean of all that was observed; sums are kept in double precision."""

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        y, seen = x[..., 0].double(), x[..., 1] > 0.5  # [R, T]
        total, count = (y.new_zeros(x.shape[0]),) * 2 if state is None else state
        totals = total[:, None] + torch.where(seen, y, 0).cumsum(1)  # [R, T]
        counts = count[:, None] + seen.cumsum(1)
        mean = (totals / counts.clamp(min=1)).to(x)
        return mean[..., None].expand(-1, -1, self.horizon), (totals[:, -1].clone(), counts[:, -1].clone())


def make(config: Config, sizes: Sizes) -> Apart:
    kinds = {"drift": Drift, "mean": Mean}
    if config.method in kinds:
        return Apart(sizes, kinds[config.method](sizes.horizon))
    return Apart(sizes, Repeated(sizes.horizon, (config.season or sizes.season) if config.method == "seasonal" else 1))


MODEL = ModelSpec(
    summary="baseline: the last value, the last season, a straight line or the mean",
    kind="causal",
    config=Config,
    tiny=Config(season=3),
    make=make,
    reference="Hyndman & Athanasopoulos 2021, section 5.2",
    aliases=("last-value", "seasonal-naive", "persistence"),
    reads=("numbers",),
    outputs=("each",),
    owns_head=True,
    closed_form=("horizon",),
)
