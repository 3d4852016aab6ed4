"""Fits exponential smoothing: the rates with the least sum of squared one-step errors over all series at once.

    S(u) = sum_i w_i sum_t e_{i,t}(u)^2        w_i: one over the mean square of the changes of series i

The rates are functions of numbers u between 0 and 1: alpha = u_1, beta = alpha u_2, gamma = (1 - alpha) u_3 and
phi = 0.8 + 0.18 u_4, the usual region (Hyndman et al. 2008, chapter 5). S is a sum of squares, so u moves by the steps
of Levenberg (1944) and Marquardt (1963), (J^T J + damping diag(J^T J))^-1 J^T e, in the box; what would leave it stays
at its edge. J is taken by differences; forms, starts and differences are run through time together. Starts are the best
points of a grid, moved on some of the data; the best of them continues with all of it.

Within a season the season before it is all that is known of seasons, and the rest of smoothing.py is linear: with
d = y - s, or y / s where the season multiplies, the errors eps of d in a block of steps 1, 2, .. solve

    d_t = l_0 + c_t b_0 + sum_{j < t} (alpha + beta c_{t-j}) eps_j + eps_t,        c_t = phi + .. + phi^t

and e is eps, or s eps. A block of a season, of `AT_ONCE` steps at most, is one product; series with missing values go
step by step.

Forms are compared by AICc = n log(S / n) + 2 p + 2 p (p + 1) / (n - p - 1) with p - 1 rates, or by held-out forecasts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.layers.counting.forecaster import Array, Span
from unrolled.layers.counting.held import hold, nothing_held
from unrolled.layers.counting.held_out import miss, spread
from unrolled.layers.counting.smoothing import FACTOR, SEASONS, TRENDS, Form, Parts, Rates, Smoothing, start, warm_up

LONGEST = 20_000, 2_000  # steps of a series, the last, that rates are fitted to; and of one with missing values
MOST = 1 << 20  # values that they are fitted to; of more, every so many-th series
PIECE = 1 << 21  # errors kept at once
FEW = 64, 5000  # series, and steps of each, that starts are tried on
AT_ONCE = 64  # steps
ITERATIONS, STEP, EDGE, ENOUGH = 40, 1e-6, 1e-4, 1e-6
GRID = Rates((0.05, 0.25, 0.5, 0.75, 0.95), (0.02, 0.3, 0.9), (0.05, 0.4, 0.9), (0.7,))  # u


class Data(NamedTuple):
    """Series behind their starts, padded on the right."""

    y: Array  # [N, T]
    used: NDArray[np.bool_]  # [N, T] where a value was observed
    weight: Array  # [N] the root of w
    starts: dict[Form, Parts]  # level and trend [N], season [m, N]

    def rows(self, some: slice, steps: int | None = None) -> Data:
        starts = {form: Parts(p.level[some], p.trend[some], p.season[:, some]) for form, p in self.starts.items()}
        return Data(self.y[some, :steps], self.used[some, :steps], self.weight[some], starts)


class Fit(NamedTuple):
    form: Form
    rates: Rates
    S: float


def rates_of(u: Array, form: Form) -> Array:
    """Rates [..., 4] from numbers [..., 4] between 0 and 1; what the form has not stays still."""
    alpha = u[..., 0]
    all_of = np.stack([alpha, alpha * u[..., 1], (1 - alpha) * u[..., 2], 0.8 + 0.18 * u[..., 3]], -1)
    return np.where(form.free, all_of, (0.0, 0.0, 0.0, 1.0))


class Block(NamedTuple):
    """What takes n steps at once, or fewer, for [K, C] rates."""

    solved: Array  # [K, C, n, n] the inverse of eps -> d
    c: Array  # [K, C, n + 1]
    power: Array  # [K, C, n + 1] phi^t
    rates: Rates  # [K, C] each


def block(rates: Array, n: int) -> Block:
    """Of rates [K, C, 4]."""
    alpha, beta, gamma, phi = np.moveaxis(rates, -1, 0)[..., None]
    power = phi ** np.arange(n + 1)
    c = power.cumsum(-1) - 1
    lag = np.subtract.outer(np.arange(n), np.arange(n))
    before = np.where(lag > 0, alpha[..., None] + beta[..., None] * c[..., np.maximum(lag, 0)], 0.0)
    return Block(np.linalg.inv(np.eye(n) + before).astype(np.float64), c, power, Rates(alpha, beta, gamma, phi))


def advance(block: Block, parts: Parts, y: Array, used: NDArray[np.bool_], multiplies: bool) -> tuple[Array, Parts]:
    """Errors [K, C, n, N] of values y [n, N], and level and trend [K, C, 1, N] and season [K, C, n, N] behind them.

    Several steps are taken only where all are used, or behind the end of a series, where nothing is.
    """
    n, (alpha, beta, gamma, _) = len(y), block.rates
    level, trend, s = parts
    c, power = block.c[..., None], block.power[..., None]  # [K, C, n + 1, 1]
    d = y / s if multiplies else y - s
    eps = np.where(used, block.solved[..., :n, :n] @ (d - level - c[:, :, 1 : n + 1] * trend), 0.0)
    back = np.arange(n - 1, -1, -1)  # steps from each to the end of the block
    level = level + c[:, :, n, None] * trend + (alpha + beta * block.c[..., back])[:, :, None] @ eps
    trend = power[:, :, n, None] * trend + (beta * block.power[..., back])[:, :, None] @ eps
    if not multiplies:
        return eps, Parts(level, trend, s + gamma[..., None] * eps)
    a, e = d - eps, s * eps
    share = np.where(a > 0, e / np.where(a > 0, a, 1.0), 0.0)
    return e, Parts(level, trend, np.clip(s + gamma[..., None] * share, 1 / FACTOR, FACTOR))


def errors(rates: Array, forms: Sequence[Form], data: Data) -> Iterator[Array]:
    """Weighted one-step errors [K, C, n], n of steps and series at once, for rates [K, C, 4] of K forms."""
    (K, C), seasonal = rates.shape[:2], any(form.seasonal != "none" for form in forms)
    m = data.starts[forms[0]].season.shape[0] if seasonal else AT_ONCE
    few = max(1, PIECE // (K * C * max(m, min(data.y.shape[1], 64 * AT_ONCE))))
    for first in range(0, len(data.y), few):
        part, found = data.rows(slice(first, first + few)), []
        gaps = bool((part.used[:, 1:] & ~part.used[:, :-1]).any() or not part.used[:, 0].all())
        size = 1 if gaps else -(-m // -(-m // AT_ONCE))
        steps, begun = block(rates, size), [part.starts[form] for form in forms]
        level, trend = (np.repeat(np.stack([p[i] for p in begun])[:, None, None], C, 1) for i in (0, 1))
        seasons = np.zeros((K, C, m, len(part.y)))
        if seasonal:
            seasons += np.stack([p.season for p in begun])[:, None]
        for year, begin in itertools.product(range(0, part.y.shape[1], m), range(0, m, size)):
            y = part.y[:, year + begin : year + min(begin + size, m)].T  # [n, N]
            place, used = slice(begin, begin + len(y)), part.used[:, year + begin : year + begin + len(y)].T
            if len(y):
                parts = Parts(level, trend, seasons[:, :, place])
                e, (level, trend, seasons[:, :, place]) = advance(steps, parts, y, used, forms[0].multiplies)
                found.append((e * part.weight).reshape(K, C, -1))
            if len(found) == 64:
                yield np.concatenate(found, 2)
                found = []
        if found:
            yield np.concatenate(found, 2)


def squares(rates: Array, forms: Sequence[Form], data: Data) -> Array:
    """S [K, C]."""
    total = sum(np.einsum("kcn,kcn->kc", e, e) for e in errors(rates, forms, data))
    return np.where(np.isfinite(total), total, np.inf)


class Slope(NamedTuple):
    """S and how it changes with u, of K fits at once."""

    S: Array  # [K]
    JJ: Array  # [K, 4, 4]
    Je: Array  # [K, 4]


def slope(u: Array, forms: Sequence[Form], data: Data) -> Slope:
    inward = np.where(u > 0.5, -STEP, STEP)  # [K, 4]
    near = np.concatenate([u[:, None], u[:, None] + inward[:, :, None] * np.eye(4)], 1)  # [K, 5, 4]
    rates = np.stack([rates_of(each, form) for each, form in zip(near, forms)])
    found = Slope(np.zeros(len(u)), np.zeros((len(u), 4, 4)), np.zeros((len(u), 4)))
    for e in errors(rates, forms, data):
        J = (e[:, 1:] - e[:, :1]) / inward[:, :, None]  # [K, 4, n]
        found.S[:] += np.einsum("kn,kn->k", e[:, 0], e[:, 0])
        found.JJ[:] += J @ J.mT
        found.Je[:] += (J @ e[:, 0, :, None])[..., 0]
    return found


def descend(u: Array, forms: Sequence[Form], data: Data) -> tuple[Array, Array]:
    """u [K, 4] after the steps, and S [K] there; a fit that gains nothing more is left alone."""
    u, damping, at = u.copy(), np.full(len(u), 1e-2), slope(u, forms, data)
    going = np.arange(len(u))
    for _ in range(ITERATIONS):
        here = Slope(*(each[going] for each in at))
        tried = np.clip(u[going] - _step(u[going], here, damping[going]), EDGE, 1 - EDGE)
        new = slope(tried, [forms[k] for k in going.tolist()], data)
        gain = np.where(np.isfinite(new.S), here.S - new.S, -np.inf)
        better = going[gain > 0]
        u[better] = tried[gain > 0]
        for old, each in zip(at, new):
            old[better] = each[gain > 0]
        damping[going] *= np.where(gain > 0, 0.2, 8.0)
        going = going[np.where(gain > 0, gain > ENOUGH * here.S, damping[going] < 1e2)]
        if not len(going):
            break
    return u, np.where(np.isfinite(at.S), at.S, np.inf)


def _step(u: Array, at: Slope, damping: Array) -> Array:
    """The step [K, 4] that is to be taken off u."""
    stays = ((u <= EDGE) & (at.Je > 0)) | ((u >= 1 - EDGE) & (at.Je < 0))
    scale = np.einsum("kii->ki", at.JJ)
    stays |= ~(scale > 0)
    moves = np.where(stays, 0.0, 1.0)
    A = at.JJ * moves[:, :, None] * moves[:, None] + np.where(stays, 1.0, damping[:, None] * scale)[..., None] * np.eye(
        4
    )
    A += 1e-12 * np.where(stays, 1.0, scale).max(1)[:, None, None] * np.eye(4)
    return np.nan_to_num(np.linalg.solve(A, (at.Je * moves)[..., None])[..., 0])


def prepare(spans: Sequence[Span], season: int, forms: Sequence[Form]) -> Data:
    """Series from behind their first values on, and where each form starts."""
    n = warm_up(season)
    most = [LONGEST[not span.seen.all()] for span in spans]
    spans = [Span(span.y[-steps:], span.seen[-steps:]) for span, steps in zip(spans, most)]
    spans = spans[:: -(-sum(len(span.y) for span in spans) // MOST) or 1]
    kept, windows = [], []
    for y, seen, _ in spans:
        if int(seen.any() and len(seen) - np.argmax(seen)) > n:
            values, known = (torch.from_numpy(each[:, 0].copy())[None] for each in (y, seen))
            line, clock = hold(values, known, nothing_held(values, n), season)
            end = int((clock[0] < n).sum()) + 1
            windows.append(line[0, end : end + n])
            kept.append(Span(y[end:], seen[end:]))
    if not any(span.seen.any() for span in kept):
        longest = max((len(span.y) for span in spans), default=0)
        raise DataError(
            f"no training series is long enough: a season of {season} needs at least {n + 1} steps from the "
            f"first value on, but the longest series has {longest}; set a shorter season or give longer series"
        )
    T, first = max(len(span.y) for span in kept), torch.stack(windows)
    y, used = np.zeros((len(kept), T)), np.zeros((len(kept), T), bool)
    for i, span in enumerate(kept):
        y[i, : len(span.y)], used[i, : len(span.y)] = span.y[:, 0], span.seen[:, 0]
    weight = np.array([float(spread(*span[:2])[0]) ** -0.5 for span in kept])
    starts = {form: Parts(*(each.numpy().T for each in start(first, form, season))) for form in forms}
    return Data(y, used, weight, starts)


def fit(forms: Sequence[Form], data: Data) -> list[Fit]:
    """The best rates of each form; forms whose season multiplies are run apart from the others."""
    found: list[Fit] = []
    with np.errstate(all="ignore"):
        for multiplies in (False, True):
            some = [form for form in forms if form.multiplies == multiplies]
            if not some:
                continue
            few = data.rows(slice(0, None, -(-len(data.y) // FEW[0])), FEW[1])
            starts = _starts(some, few)  # [K, n, 4]
            n = starts.shape[1]
            u, _ = descend(starts.reshape(-1, 4), [form for form in some for _ in range(n)], few)
            tried = u.reshape(-1, n, 4)
            S = squares(np.stack([rates_of(each, form) for each, form in zip(tried, some)]), some, data)  # [K, n]
            u, S = descend(np.take_along_axis(tried, S.argmin(1)[:, None, None], 1)[:, 0], some, data)
            found += [Fit(form, Rates(*rates_of(each, form).tolist()), float(at)) for form, each, at in zip(some, u, S)]
    return found


def _starts(forms: Sequence[Form], data: Data) -> Array:
    """For each form [K, n, 4] the best points of the grid with each second, and with each third number of it."""
    grid = np.stack(np.meshgrid(*GRID, indexing="ij"), -1)  # [a, b, c, d, 4]
    S = squares(np.stack([rates_of(grid.reshape(-1, 4), form) for form in forms]), forms, data)
    S, found = S.reshape(-1, *grid.shape[:-1]), []
    for axis, points in ((1, grid.shape[1]), (2, grid.shape[2])):
        for place in range(points):
            some, of = grid.take(place, axis).reshape(-1, 4), S.take(place, axis + 1).reshape(len(forms), -1)
            found.append(some[of.argmin(1)])
    return np.stack(found, 1)


def aicc(fit: Fit, n: int) -> float:
    p = 1 + sum(fit.form.free)
    return n * math.log(max(fit.S / n, 1e-300)) + 2 * p + (2 * p * (p + 1) / (n - p - 1) if n > p + 1 else math.inf)


class FittedSmoothing(Smoothing):
    """Exponential smoothing in the best of some forms."""

    def __init__(self, horizon: int, season: int, forms: Sequence[Form]) -> None:
        super().__init__(horizon, season, forms[-1])
        self.forms = forms

    def solve(self, spans: Sequence[Span], held_out: Sequence[Span] = ()) -> dict[str, Any]:
        """Fit the rates of each form, and take the best form; what was chosen."""
        forms = [form for form in self.forms if not form.multiplies or all((s.y[s.seen] > 0).all() for s in spans)]
        if not forms:
            raise DataError("a multiplicative season needs values above 0, but some are not; set seasonal to additive")
        data = prepare(spans, self.season, forms)
        found = fit(forms, data)
        best = found[0] if len(found) == 1 else self._best(found, int(data.used.sum()), held_out)
        self.set_form(best.form, best.rates)
        chosen: dict[str, Any] = {}
        if len({form.trend for form in self.forms}) > 1:
            chosen["trend"] = best.form.trend
        if len({form.seasonal for form in self.forms}) > 1:
            chosen["seasonal"] = best.form.seasonal
        rates = zip(Rates._fields, best.rates, best.form.free)
        return chosen | {name: round(rate, 4) for name, rate, free in rates if free}

    def _best(self, found: list[Fit], n: int, held_out: Sequence[Span]) -> Fit:
        scores = {}
        for one in found:
            self.set_form(one.form, one.rates)
            scores[one.form] = miss(self, held_out, self.horizon)
        if not all(map(math.isfinite, scores.values())):  # held-out data has no whole horizon
            scores = {one.form: aicc(one, n) for one in found}
        return min(found, key=lambda one: scores[one.form])


def forms_of(trend: str, seasonal: str, season: int) -> list[Form]:
    """The forms that settings leave open."""
    trends = TRENDS if trend == "auto" else (trend,)
    seasons = (SEASONS if season > 1 else SEASONS[:1]) if seasonal == "auto" else (seasonal,)
    return [Form(*both) for both in itertools.product(trends, seasons)]
