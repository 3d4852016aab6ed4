"""Metrics of forecasts as sums, so that they can be added over windows, and intervals around points.

MASE      mean |e| / mean error of the seasonal naive forecast in the training span     Hyndman & Koehler 2006
sMAPE     mean 2 |e| / (|y| + |t|), in percent                                          Makridakis 1993
WQL       2 sum of pinball losses over levels / (levels * sum |t|)                      Park et al. 2022
coverage  the share of targets inside of the central interval
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVELS = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)
MEDIAN = LEVELS.index(0.5)
INTERVALS = {50: (2, 4), 80: (1, 5), 95: (0, 6)}  # percent, by the places of their ends among the levels
FEWEST = 20  # residuals from which quantiles are taken; of fewer, those of a normal distribution

Numbers = NDArray[np.float64]


class Sums:
    """Sums over windows, kept by step of the horizon [H]."""

    def __init__(self, horizon: int) -> None:
        self.of = {
            name: np.zeros(horizon) for name in ("n", "abs", "square", "scaled", "scaled_square", "smape", "size")
        }
        self.pinball = np.zeros((len(LEVELS), horizon))
        self.inside = {percent: np.zeros(horizon) for percent in INTERVALS}

    def add(self, quantiles: Numbers, mean: Numbers, target: Numbers, naive: Numbers, encoded: Numbers) -> None:
        """quantiles [Q, B, H, D], mean, target [B, H, D] in units, NaN where missing; naive [B, 1, D]; `encoded`
        [B, H, D] are the errors of the mean in standard deviations of the series."""
        seen = ~np.isnan(target)
        median = quantiles[MEDIAN]
        error = np.abs(median - target)
        size = np.abs(median) + np.abs(target)
        share = np.divide(2 * error, size, out=np.zeros_like(error), where=seen & (size > 0))
        for name, values in {
            "n": seen, "abs": error, "square": (mean - target) ** 2, "scaled": error / naive,
            "scaled_square": encoded**2, "smape": share, "size": np.abs(target),
        }.items():  # fmt: skip
            self.of[name] += np.where(seen, values, 0.0).sum((0, 2))
        for k, level in enumerate(LEVELS):
            e = target - quantiles[k]
            self.pinball[k] += np.where(seen, np.maximum(level * e, (level - 1) * e), 0.0).sum((0, 2))
        for percent, (low, high) in INTERVALS.items():
            inside = (quantiles[low] <= target) & (target <= quantiles[high])
            self.inside[percent] += (inside & seen).sum((0, 2))

    @classmethod
    def together(cls, parts: Sequence[Sums]) -> Sums:
        """The sums over the windows of all parts."""
        if len(parts) == 1:
            return parts[0]
        found = cls(len(parts[0].of["n"]))
        for part in parts:
            for name, values in part.of.items():
                found.of[name] += values
            for percent, values in part.inside.items():
                found.inside[percent] += values
            found.pinball += part.pinball
        return found

    def metrics(self) -> dict[str, float]:
        """Over all steps of the horizon."""
        return self._metrics(slice(None))

    def by_step(self) -> list[dict[str, float]]:
        return [self._metrics(slice(h, h + 1)) for h in range(len(self.of["n"]))]

    def _metrics(self, steps: slice) -> dict[str, float]:
        s = {name: float(values[steps].sum()) for name, values in self.of.items()}
        n = max(s["n"], 1.0)
        found = {
            "mase": s["scaled"] / n, "mae": s["abs"] / n, "rmse": math.sqrt(s["square"] / n),
            "smape": 100 * s["smape"] / n, "mse_scaled": s["scaled_square"] / n,
        }  # fmt: skip
        if s["size"] > 0:
            found["wql"] = 2 * float(self.pinball[:, steps].sum()) / (len(LEVELS) * s["size"])
        return {**found, **{f"coverage_{p}": float(each[steps].sum()) / n for p, each in self.inside.items()}}


@dataclass(frozen=True)
class Residuals:
    """Intervals around forecasts that are points, from the errors on held-out windows, in standard deviations.

    The error of step h is width_h times a number whose quantiles are those of all steps together, so that a few windows
    are enough; as these overlap, widths are larger by half a window among those that do not. Intervals are symmetric.
    Where a normal distribution of errors in proportion to forecasts above 0 is more likely, widths are multiplied by
    the forecast.
    """

    width: tuple[float, ...]  # [H]
    quantiles: tuple[float, ...]  # [Q]
    least: float | None = None
    """the smallest forecast that widths are multiplied by; None: they are widths as they are"""

    @classmethod
    def fit(cls, errors: Numbers, apart: float = math.inf, levels: Numbers | None = None) -> Residuals:
        """errors [n, H, D], target less forecast, NaN where missing; of so many windows that do not overlap. `levels`:
        the forecasts themselves, counted from 0 of the data, where errors may be in proportion to them."""
        least = _least(errors, levels)
        if least is not None and levels is not None:
            errors = errors / levels
        H = errors.shape[1]
        squares = np.array([_mean(errors[:, h] ** 2) for h in range(H)])
        width = np.sqrt(_smoothed(squares))
        floor = max(float(np.nanmax(width, initial=0.0)) * 1e-3, 1e-9)
        width = np.maximum(np.nan_to_num(width, nan=floor), floor)
        z = (errors / width[None, :, None]).ravel()
        z = z[~np.isnan(z)]
        if len(z) < FEWEST:
            found = [_normal(level) for level in LEVELS]
        else:
            half = np.quantile(np.concatenate([z, -z]), LEVELS)  # symmetric, so that it has no opinion on the median
            found = np.where(np.arange(len(LEVELS)) == MEDIAN, 0.0, half).tolist()
        return cls(tuple((width * (1 + 0.5 / max(apart, 1.0))).tolist()), tuple(found), least)

    def around(self, points: Numbers, levels: Numbers | None = None) -> Numbers:
        """Quantiles [Q, n, H, D] of points [n, H, D]."""
        width: Numbers = np.array(self.width)[: points.shape[1], None]
        if self.least is not None and levels is not None:
            width = width * np.maximum(levels, self.least)  # [n, H, D]
        return points[None] + np.array(self.quantiles)[:, None, None, None] * width

    def to_json(self) -> dict[str, Any]:
        return {"width": list(self.width), "quantiles": list(self.quantiles), "least": self.least}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Residuals:
        least = told.get("least")
        return cls(tuple(told["width"]), tuple(told["quantiles"]), None if least is None else float(least))


def _least(errors: Numbers, levels: Numbers | None) -> float | None:
    """The smallest of the levels, where errors in proportion to them are the more likely ones."""
    seen = ~np.isnan(errors)
    if levels is None or not seen.any() or not (levels[seen] > 0).all():
        return None
    e, level = errors[seen], levels[seen]
    even, with_level = np.mean(e**2), np.mean((e / level) ** 2)
    if not even > 0:
        return None
    return float(level.min()) if np.log(with_level) + 2 * np.mean(np.log(level)) < np.log(even) else None


def _mean(values: Numbers) -> float:
    seen = values[~np.isnan(values)]
    return float(seen.mean()) if len(seen) else math.nan


def _smoothed(values: Numbers) -> Numbers:
    """Each with its neighbours, so that a step that was met by chance is not told as certain."""
    wide = np.concatenate([values[:1], values, values[-1:]])
    with np.errstate(all="ignore"):
        return np.nanmean(np.stack([wide[:-2], wide[1:-1], wide[1:-1], wide[2:]]), 0)


def _normal(level: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(level)


def widened(quantiles: Numbers, spread: float) -> Numbers:
    """Quantiles [Q, ..] so many times as far from the median."""
    return quantiles if spread == 1 else quantiles[MEDIAN] + spread * (quantiles - quantiles[MEDIAN])


def pinball_sum(quantiles: Numbers, target: Numbers) -> float:
    """The pinball losses of quantiles [Q, ..] of all levels and numbers, NaN left out."""
    e = target - quantiles
    level = np.array(LEVELS).reshape(-1, *[1] * target.ndim)
    return float(np.nansum(np.maximum(level * e, (level - 1) * e)))


def tail(quantiles: Numbers, value: Numbers) -> Numbers:
    """The probability [n] of a value at least as far from the median, of quantiles [Q, n]; tails are exponential.

    >>> tail(np.array([[-1.96], [-1.2816], [-0.6745], [0.0], [0.6745], [1.2816], [1.96]]), np.array([1.2816])).round(3)
    array([0.2])
    """
    levels, size = np.array(LEVELS), quantiles[-1] - quantiles[0]
    size, middle = np.where(size > 0, size, 1.0), quantiles[MEDIAN]
    quantiles, value = (quantiles - middle) / size, (value - middle) / size  # the unit of the data has no part in it
    below = np.empty(len(value))
    for k, (q, v) in enumerate(zip(quantiles.T, value)):
        q = np.maximum.accumulate(q) + (np.arange(len(q)) - MEDIAN) * 1e-12
        if v < q[0]:
            slope = max((q[1] - q[0]) / (levels[1] - levels[0]), 1e-30)
            below[k] = levels[0] * math.exp(max((v - q[0]) / (slope * levels[0]), -600))
        elif v > q[-1]:
            slope = max((q[-1] - q[-2]) / (levels[-1] - levels[-2]), 1e-30)
            rest = 1 - levels[-1]
            below[k] = 1 - rest * math.exp(max((q[-1] - v) / (slope * rest), -600))
        else:
            below[k] = np.interp(v, q, levels) if not np.isnan(v) else np.nan
    above = np.where(value > quantiles[-1], _upper(quantiles, value, levels), 1 - below)
    return np.minimum(2 * np.minimum(below, above), 1.0)


def _upper(quantiles: Numbers, value: Numbers, levels: Numbers) -> Numbers:
    """1 - F beyond the last quantile, without the cancellation of 1 - (1 - p)."""
    slope = np.maximum((quantiles[-1] - quantiles[-2]) / (levels[-1] - levels[-2]), 1e-30)
    rest = 1 - levels[-1]
    found: Numbers = rest * np.exp(np.clip((quantiles[-1] - value) / (slope * rest), -600.0, 0.0))
    return found
