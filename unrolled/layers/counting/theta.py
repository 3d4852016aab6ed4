"""The Theta method: half of a straight line and half of a smoothed level, on seasonally adjusted values.

    x_t = y_t / s_t  or  y_t - s_t                                     s: classical decomposition of y_1 .. y_t
    l_t = l_{t-1} + alpha (x_t - l_{t-1}),  l_1 = x_1                  simple exponential smoothing
    b = the slope of the least squares line through x_1 .. x_t
    forecast of t+h: (l_t + b/2 (h - 1 + (1 - (1 - alpha)^t) / alpha)) s_{t+h}     or  .. + s_{t+h}

That is the mean of the lines with Theta = 0 (straight) and Theta = 2 (smoothed), which is smoothing with half of the
slope as drift (Hyndman & Billah 2003). The season s of a phase is the mean of y / a (or y - a) over all its steps, a
the centred moving average over a season, divided by (or less) the mean of all m of them.

All of it is computed anew at each t, as if the series ended there, at a constant cost: level and slope are linear in
the values, so that sums by phase are enough. With S_p any of these sums over the steps of phase p, the sum of x is
sum_p S_p / s_p, or sum_p (S_p - s_p N_p), N the same sum over ones.

Missing values leave level and slope as they are; for the moving average they are held (held.py). Until two seasons (or
4 values) were read the forecast is naive.

Assimakopoulos & Nikolopoulos (2000); Hyndman & Billah (2003).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from unrolled.core.causal import Causal
from unrolled.core.errors import DataError
from unrolled.core.state import State
from unrolled.layers.counting.forecaster import Array, Span
from unrolled.layers.counting.held import Held, held_after, hold, nothing_held, repeated
from unrolled.layers.counting.linear_map import held
from unrolled.layers.counting.smoothing import FACTOR, SEASONS, Form, warm_up
from unrolled.layers.counting.smoothing_fit import LONGEST, fit, prepare

ONE_SIDED = 1.645  # of the standard normal distribution, 5 %
LEVEL = slice(0, 2)  # of the sums by phase, those that fade
AT_ONCE, NUMBERS = 128, 1 << 20  # steps, and sums of all of them


class Sums(NamedTuple):
    """What is carried of a series."""

    held: Held
    by_phase: Tensor  # [R, 8, m] smoothed y and 1; y and 1; k y and k (k: steps from the first); y / a, or y - a, and 1
    squares: Tensor  # [R] sum of k^2
    n_values: Tensor  # [R] so far


def average(line: Tensor, season: int) -> Tensor:
    """Centred moving averages [R, N - w + 1] over a season of a line [R, N], w = m, or m + 1 with halves at both ends.

    >>> average(torch.tensor([[1.0, 2.0, 5.0]]), 2).tolist()
    [[2.5]]
    """
    kernel = line.new_full((season + 1 - season % 2,), 1 / season)
    if season % 2 == 0:
        kernel[0] = kernel[-1] = 0.5 / season
    return F.conv1d(line[:, None], kernel[None, None])[:, 0]


def from_average(y: Tensor, a: Tensor, multiplies: bool) -> Tensor:
    """How far values are from their moving average, as a factor or a difference."""
    return torch.where(a > 0, y / torch.where(a > 0, a, 1), 1) if multiplies else y - a


def normalised(mean: Tensor, multiplies: bool) -> Tensor:
    """The season [.., m] from the mean of each phase."""
    if not multiplies:
        return mean - mean.mean(-1, keepdim=True)
    mean = mean.clamp(1 / FACTOR, FACTOR)
    return (mean / mean.mean(-1, keepdim=True)).clamp(1 / FACTOR, FACTOR)


class Theta(Causal):
    """Single series x [R, T, 2] (value, whether observed) -> forecasts [R, T, H]. `alpha` is shared by all series."""

    d_in = 2

    alpha: Tensor
    kind: Tensor  # place of the season in SEASONS

    def __init__(self, horizon: int, season: int, seasonal: str) -> None:
        super().__init__()
        self.horizon = self.d_out = horizon
        self.steps = season
        self.register_buffer("alpha", torch.tensor(0.3))
        self.register_buffer("kind", torch.tensor(SEASONS.index(seasonal)))

    def set_form(self, seasonal: str, alpha: float) -> None:
        self.alpha.fill_(alpha)
        self.kind.fill_(SEASONS.index(seasonal))

    @property
    def seasonal(self) -> str:
        return SEASONS[int(self.kind)]

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        y, seen = x[..., 0], x[..., 1] > 0.5  # [R, T]
        m = 1 if self.seasonal == "none" else self.steps
        n = warm_up(m)
        if state is None:
            none = x.new_zeros(len(x), dtype=torch.float64)
            state = Sums(nothing_held(x, n), none.new_zeros(len(x), 8, m), none, none)
        line, clock = hold(y, seen, state.held, m)
        ahead, sums = self._run(y.double(), seen, line.double(), clock, state, m)
        forecasts = torch.where((clock >= n)[..., None], ahead.to(x), repeated(line, clock, m, self.horizon))
        return forecasts, sums._replace(held=held_after(line, clock, n))

    def _run(self, y: Tensor, seen: Tensor, line: Tensor, clock: Tensor, before: Sums, m: int) -> tuple[Tensor, Sums]:
        """The forecasts [R, T, H] of each step, and the sums behind the last; some steps are taken at once."""
        (R, T), w, multiplies = y.shape, m + 1 - m % 2, self.seasonal == "multiplicative"
        k = (clock - 1).clamp(min=0)  # [R, T] steps from the first
        v, one, k1 = torch.where(seen, y, 0), seen.double(), k.double()
        counts = before.n_values[:, None] + one.cumsum(1)  # [R, T] values so far
        squares = before.squares[:, None] + (one * k1**2).cumsum(1)
        whole = (clock >= w).double()  # where a moving average is known, m // 2 steps back
        centre = line[:, line.shape[1] - T - w // 2 : line.shape[1] - w // 2]
        apart = from_average(centre, average(line[:, line.shape[1] - T - w + 1 :], m), multiplies)
        weight = torch.where(counts == 1, one, self.alpha.double() * one)  # of a value in the level
        added = torch.stack([weight * v, weight, v, one, k1 * v, k1 * one, whole * apart, whole], 2)  # [R, T, 8]
        phase = torch.stack([k % m, (k - w // 2) % m], 2)  # [R, T, 2]
        by_phase, found = before.by_phase, []
        n = min(AT_ONCE, max(1, NUMBERS // (8 * m * R)))
        for first in range(0, T, n):
            some = slice(first, first + n)
            sums = self._summed(by_phase, added[:, some], one[:, some], phase[:, some])  # [R, n, 8, m]
            by_phase = sums[:, -1]
            found.append(self._ahead(sums, k[:, some], counts[:, some], squares[:, some], m))
        return torch.cat(found, 1), Sums(before.held, by_phase.clone(), squares[:, -1].clone(), counts[:, -1].clone())

    def _summed(self, before: Tensor, added: Tensor, one: Tensor, phase: Tensor) -> Tensor:
        """The sums by phase after each of n steps [R, n, 8, m]; those of the level fade with each value."""
        m = before.shape[2]
        own = (
            F.one_hot(phase, m).double().repeat_interleave(torch.tensor([6, 2], device=phase.device), 2)
        )  # [R, n, 8, m]
        terms = added[..., None] * own
        fading = (one * torch.log1p(-self.alpha.double())).cumsum(1)  # [R, n]
        share = torch.exp((fading[:, :, None] - fading[:, None]).tril()).tril()  # [R, n, n] of a term in a later level
        level = (share @ terms[:, :, LEVEL].flatten(2)).unflatten(2, (2, m))
        level = level + torch.exp(fading)[..., None, None] * before[:, None, LEVEL]
        return torch.cat([level, before[:, None, 2:] + terms[:, :, 2:].cumsum(1)], 2)

    def _ahead(self, sums: Tensor, k: Tensor, n: Tensor, squares: Tensor, m: int) -> Tensor:
        """The forecasts [R, n, H] from sums after each step."""
        alpha, multiplies = self.alpha.double(), self.seasonal == "multiplicative"
        s = self._season(sums, multiplies, m)  # [R, n, m]
        level, total, timed = _adjusted(sums, s, multiplies)  # [R, n]
        at = sums[:, :, 5].sum(2)
        spread = n * squares - at**2
        b = torch.where(spread > 0, (n * timed - at * total) / torch.where(spread > 0, spread, 1), 0)
        steps = torch.arange(1, self.horizon + 1, device=k.device)
        drift = steps - 1 + ((1 - (1 - alpha) ** n) / alpha)[..., None]  # [R, n, H]
        on, there = level[..., None] + b[..., None] / 2 * drift, s.gather(2, (k[..., None] + steps) % m)
        return on * there if multiplies else on + there

    def _season(self, sums: Tensor, multiplies: bool, m: int) -> Tensor:
        if m == 1:
            return torch.zeros_like(sums[:, :, 0])
        ratios, ones = sums[:, :, 6], sums[:, :, 7]
        return normalised(torch.where(ones > 0, ratios / ones.clamp(min=1), float(multiplies)), multiplies)


def _adjusted(sums: Tensor, s: Tensor, multiplies: bool) -> tuple[Tensor, ...]:
    """The smoothed level, the sum and the sum times k of the seasonally adjusted values, [R, n] each."""
    values, ones = sums[:, :, 0:6:2], sums[:, :, 1:6:2]  # [R, n, 3, m]
    each = values / s[:, :, None] if multiplies else values - s[:, :, None] * ones
    return each.sum(3).unbind(2)


class FittedTheta(Theta):
    """The Theta method with the best rate, and a season where there is one."""

    def __init__(self, horizon: int, season: int, seasonal: str) -> None:
        """`seasonal` may be auto: a factor, or where values are not above 0 a difference, if it is significant."""
        self.asked = seasonal
        super().__init__(horizon, season, "none" if seasonal == "auto" else seasonal)

    def solve(self, spans: Sequence[Span], held_out: Sequence[Span] = ()) -> dict[str, Any]:
        """Fit the rate, and decide on the season; what was chosen."""
        spans = [Span(span.y[-LONGEST[0] :], span.seen[-LONGEST[0] :]) for span in spans]
        positive = all((span.y[span.seen] > 0).all() for span in spans)
        seasonal, m = self.asked, self.steps
        if seasonal == "auto":
            is_seasonal = m > 1 and significant([held(span)[:, 0] for span in spans], m)
            seasonal = ("multiplicative" if positive else "additive") if is_seasonal else "none"
        elif seasonal == "multiplicative" and not positive:
            raise DataError("a multiplicative season needs values above 0, but some are not; set seasonal to additive")
        if seasonal != "none":
            spans = _without_season(spans, m, seasonal == "multiplicative")
        form = Form("none", "none")
        (best,) = fit([form], prepare(spans, 1, [form]))
        self.set_form(seasonal, best.rates.alpha)
        return ({"seasonal": seasonal} if self.asked == "auto" else {}) | {"alpha": round(best.rates.alpha, 4)}


def significant(series: Sequence[Array], season: int) -> bool:
    """Whether the autocorrelation at lag m of most series is above what chance makes of it, at a level of 5 %.

    r_m > 1.645 sqrt((1 + r_1^2 + .. + r_{m-1}^2) / n), as in statsmodels, for series of at least two seasons.
    """
    votes = []
    for y in series:
        if (n := len(y)) >= 2 * season and y.std() > 0:
            z = y - y.mean()
            products = np.fft.irfft(np.abs(np.fft.rfft(z, 2 * n)) ** 2)[: season + 1]
            r = products / products[0]
            votes.append(bool(r[-1] > ONE_SIDED * np.sqrt((r[:-1] ** 2).sum() / n)))
    return 2 * sum(votes) >= max(len(votes), 1)


def season_of(y: Tensor, season: int, multiplies: bool) -> Tensor:
    """The season [m] of a whole series [N], N >= 2 m, from its first step on."""
    a = average(y[None], season)[0]
    first = season // 2
    rest = from_average(y[first : first + len(a)], a, multiplies)
    phases = [rest[(p - first) % season :: season].mean() for p in range(season)]
    return normalised(torch.stack(phases), multiplies)


def _without_season(spans: Sequence[Span], season: int, multiplies: bool) -> list[Span]:
    """Seasonally adjusted series, from their first value on; those shorter than two seasons are left out."""
    found = []
    for span in spans:
        z = held(span)
        if len(z) >= 2 * season:
            s = season_of(torch.from_numpy(z[:, 0].copy()), season, multiplies).numpy()
            s = np.resize(s, len(z))[:, None]
            found.append(Span(z / s if multiplies else z - s, span.seen[len(span.y) - len(z) :]))
    if not found:
        longest = max((len(span.y) for span in spans), default=0)
        raise DataError(
            f"no training series is long enough: a season of {season} needs at least {2 * season} steps from the "
            f"first value on, but the longest series has {longest}; set a shorter season or give longer series"
        )
    return found
