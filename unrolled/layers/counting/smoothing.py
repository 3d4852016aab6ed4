"""Exponential smoothing as a state space recursion: level l, trend b and season s, each moved by the error e.

    a = l_{t-1} + phi b_{t-1}                                      the damped line one step on
    e_t = y_t - (a + s_{t-m})                                      multiplicative season: y_t - a s_{t-m}
    l_t = a + alpha e_t                                            alpha e_t / s_{t-m}
    b_t = phi b_{t-1} + beta e_t                                   beta e_t / s_{t-m}
    s_t = s_{t-m} + gamma e_t                                      gamma e_t / a

    forecast of t+h: l_t + (phi + .. + phi^h) b_t + s_{t+h-m}      (..) s_{t+h-m}

Beyond a season its m numbers repeat. phi = 1 is a trend without damping; without trend or season beta, gamma and what
they move are 0 (a factor is 1). A missing value has e_t = 0: the state follows its own forecast.

The start is found in the first 2 k values, k = max(m, 2), missing ones held (held.py): with A and B the means of the
first and second k, the trend is (B - A) / k, the level lies on that line at the last of them, and the season is the
mean, over both, of how far each step is from the line, as a difference or a factor of mean 1. Until then the forecast
is naive. Factors of the season are kept between 1 / FACTOR and FACTOR, and an a of 0 or less moves no season.

Holt (1957), Winters (1960); the form by errors: Hyndman, Koehler, Ord & Snyder (2008), chapter 2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from unrolled.core.causal import Causal
from unrolled.core.state import State
from unrolled.core.trace import note
from unrolled.layers.counting.held import Held, held_after, hold, nothing_held, repeated

TRENDS = ("none", "additive", "damped")
SEASONS = ("none", "additive", "multiplicative")
FACTOR = 50.0  # times the level that a season may be


class Form(NamedTuple):
    trend: str
    seasonal: str

    @property
    def multiplies(self) -> bool:
        return self.seasonal == "multiplicative"

    @property
    def free(self) -> tuple[bool, bool, bool, bool]:
        """Which of alpha, beta, gamma and phi there are."""
        return True, self.trend != "none", self.seasonal != "none", self.trend == "damped"


class Rates(NamedTuple):
    """Numbers, tensors or arrays."""

    alpha: Any
    beta: Any
    gamma: Any
    phi: Any


class Parts(NamedTuple):
    """The state of a step; tensors or arrays."""

    level: Any
    trend: Any
    season: Any  # of the step itself, and after it that of one season later


def tick(parts: Parts, y: Tensor, used: Tensor, rates: Rates, multiplies: bool) -> Parts:
    """One step of series [R]: the parts after it."""
    (level, trend, season), (alpha, beta, gamma, phi) = parts, rates
    trend = phi * trend
    a = level + trend
    e = torch.where(used, y - (a * season if multiplies else a + season), 0.0)
    if not multiplies:
        return Parts(a + alpha * e, trend + beta * e, season + gamma * e)
    share = torch.where(a > 0, e / torch.where(a > 0, a, 1.0), 0.0)
    moved = torch.clip(season + gamma * share, 1 / FACTOR, FACTOR)
    return Parts(a + alpha * e / season, trend + beta * e / season, moved)


def warm_up(season: int) -> int:
    """How many values the start is found in: 2 k."""
    return 2 * max(season, 2)


def start(window: Tensor, form: Form, season: int) -> Parts:
    """The parts behind the first values [R, 2 k]: level and trend [R], the season of the next m steps [R, m]."""
    k = window.shape[1] // 2
    first, second = window[:, :k].mean(1), window[:, k:].mean(1)
    trend = (second - first) / k * (form.trend != "none")
    level = second + trend * (k - 1) / 2
    if form.seasonal == "none":
        return Parts(level, trend, window.new_zeros(len(window), season))
    steps = torch.arange(k, device=window.device) - (k - 1) / 2
    line = torch.stack([first, second], 1)[..., None] + trend[:, None, None] * steps  # [R, 2, k]
    both = window.unflatten(1, (2, k))
    if not form.multiplies:
        return Parts(level, trend, (both - line).mean(1))
    factors = (
        torch.where(line > 0, both / torch.where(line > 0, line, 1), 1).mean(1).clamp(1 / FACTOR, FACTOR)
    )  # [R, k]
    return Parts(level, trend, (factors / factors.mean(1, keepdim=True)).clamp(1 / FACTOR, FACTOR))


class Smoothed(NamedTuple):
    """What is carried of a series."""

    held: Held
    level: Tensor  # [R]
    trend: Tensor  # [R]
    seasons: Tensor  # [R, m] of the next m steps


class Smoothing(Causal):
    """Single series x [R, T, 2] (value, whether observed) -> forecasts [R, T, H]. `rates` are shared by all series."""

    d_in = 2

    rates: Tensor  # alpha, beta, gamma, phi
    kinds: Tensor  # places of trend and season in TRENDS and SEASONS

    def __init__(self, horizon: int, season: int, form: Form) -> None:
        super().__init__()
        self.horizon = self.d_out = horizon
        self.season = season
        self.register_buffer("rates", torch.zeros(4))
        self.register_buffer("kinds", torch.zeros(2, dtype=torch.long))
        self.set_form(form, Rates(0.3, 0.1, 0.1, 0.95))

    def set_form(self, form: Form, rates: Rates) -> None:
        """Rates that the form has none of are taken as what they then are."""
        still = Rates(0.0, 0.0, 0.0, 1.0)
        found = [rate if free else none for rate, none, free in zip(rates, still, form.free)]
        self.rates.copy_(torch.tensor(found, dtype=torch.float64))
        self.kinds.copy_(torch.tensor([TRENDS.index(form.trend), SEASONS.index(form.seasonal)]))

    @property
    def form(self) -> Form:
        trend, seasonal = self.kinds.tolist()
        return Form(TRENDS[trend], SEASONS[seasonal])

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        y, seen = x[..., 0], x[..., 1] > 0.5  # [R, T]
        form, n = self.form, warm_up(self.season)
        before = self._nothing_known(x, form) if state is None else state
        line, clock = hold(y, seen, before.held, self.season)
        levels, trends, seasons = self._run(y, seen & (clock > n), line, clock == n, before, form)
        after = Smoothed(held_after(line, clock, n), levels[:, -1].clone(), trends[:, -1].clone(),
                         seasons[:, -self.season :].clone())  # fmt: skip
        forecasts = self._ahead(levels, trends, seasons, form)
        return torch.where((clock >= n)[..., None], forecasts, repeated(line, clock, self.season, self.horizon)), after

    def _nothing_known(self, x: Tensor, form: Form) -> Smoothed:
        one = float(form.multiplies)
        level, season = x.new_full((len(x),), one), x.new_full((len(x), self.season), one)
        return Smoothed(nothing_held(x, warm_up(self.season)), level, torch.zeros_like(level), season)

    def _run(
        self, y: Tensor, used: Tensor, line: Tensor, starts: Tensor, before: Smoothed, form: Form
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Levels and trends [R, T], and the seasons [R, m + T] with those that were given."""
        n, m, rates = warm_up(self.season), self.season, Rates(*self.rates.to(y))
        level, trend, seasons = before.level, before.trend, list(before.seasons.unbind(1))
        levels, trends = [], []
        for t, begins in enumerate(starts.any(0).tolist()):
            parts = tick(Parts(level, trend, seasons[t]), y[:, t], used[:, t], rates, form.multiplies)
            level, trend = parts.level, parts.trend
            seasons.append(parts.season)
            if begins:
                fresh, here = start(line[:, t + 1 : t + 1 + n], form, m), starts[:, t]
                level, trend = torch.where(here, fresh.level, level), torch.where(here, fresh.trend, trend)
                if form.seasonal != "none":
                    for j in range(m):
                        seasons[t + 1 + j] = torch.where(here, fresh.season[:, j], seasons[t + 1 + j])
            levels.append(level)
            trends.append(trend)
        return torch.stack(levels, 1), torch.stack(trends, 1), torch.stack(seasons, 1)

    def _ahead(self, levels: Tensor, trends: Tensor, seasons: Tensor, form: Form) -> Tensor:
        """The forecasts [R, T, H]."""
        h = torch.arange(self.horizon, device=levels.device)
        damped = (self.rates[3].to(levels) ** (h + 1)).cumsum(0)  # phi + .. + phi^h
        on = levels[..., None] + damped * trends[..., None]  # [R, T, H]
        if form.seasonal == "none":
            note("components", {"level": on - damped * trends[..., None], "trend": damped * trends[..., None]})
            return on
        season = seasons[:, 1:].unfold(1, self.season, 1)[..., h % self.season]  # [R, T, H]
        y = on * season if form.multiplies else on + season
        parts = {"level": on - damped * trends[..., None], "trend": damped * trends[..., None], "season": y - on}
        note("components", parts)
        return y

    def serial_steps(self, length: int) -> int:
        return length
