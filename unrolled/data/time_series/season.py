"""After how many steps series repeat themselves, if they do: found in the training span alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unrolled.data.time_series.stamps import Step

MOST_SERIES = 50  # that are looked at
MOST_STEPS = 100_000  # of each of them
LONGEST = 2000  # steps of a season that is found by autocorrelation
STEPS = 8  # of a horizon that are tried
ALIKE = 1.15  # times the least error, which a shorter season may have
NEARLY = 0.9  # as high as the highest peak
FEWEST = 12  # values of a series that are looked at
CLEAR = 0.3  # the autocorrelation of a season that is worth trying


def find_season(series: Sequence[NDArray[np.float64]], step: Step | None, horizon: int) -> int:
    """The number of steps after which repeating values is best on average over a horizon, of those that the step
    suggests and those at which the series, without their trends, are correlated with themselves; 1: none is better than
    the last value. A trend would be held against the longer one of two seasons."""
    some = [_detrended(values[:, 0]) for values in series[:: max(1, len(series) // MOST_SERIES)]]
    longest = max((len(values) for values in some), default=0)
    tried = {1, *(step.seasons() if step is not None else ()), *_peaks(max(some, key=len))} if some else {1}
    errors = {s: _error(some, s, horizon) for s in tried if 2 * s < longest}
    least = min(errors.values(), default=0.0)
    return min((s for s, error in errors.items() if error <= ALIKE * least), default=1)  # not two seasons for one


def _error(series: Sequence[NDArray[np.float64]], season: int, horizon: int) -> float:
    """The mean error of repeating the last season over a horizon, in standard deviations."""
    total, count = 0.0, 0
    for values in series:
        spread = np.nanstd(values) if not np.isnan(values).all() else 0.0
        for h in np.unique(np.linspace(1, horizon, min(horizon, STEPS)).round().astype(int)):
            lag = season * -(-int(h) // season)
            if spread > 0 and len(values) > lag:
                errors = np.abs(values[lag:] - values[:-lag]) / spread
                total, count = total + float(np.nansum(errors)), count + int((~np.isnan(errors)).sum())
    return total / count if count else np.inf


def _detrended(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The last of them less the line that fits best, NaN where missing; a line itself, and too few, as they are."""
    values = values[-MOST_STEPS:]
    t, seen = np.arange(len(values)), ~np.isnan(values)
    if seen.sum() < FEWEST:
        return values
    found: NDArray[np.float64] = values - np.polyval(np.polyfit(t[seen], values[seen], 1), t)
    return found if np.nanstd(found) > 1e-9 * np.nanstd(values) else values


def _peaks(values: NDArray[np.float64]) -> list[int]:
    """The lags of the three highest clear peaks of the autocorrelation, and of the first that is nearly as high, as a
    season comes again with its multiples."""
    n = len(values)
    seen = ~np.isnan(values)
    if seen.sum() < FEWEST:
        return []
    power = np.abs(np.fft.rfft(np.where(seen, values, 0.0), 2 * n)) ** 2
    products = np.fft.irfft(power)[: min(n // 3, LONGEST) + 2]
    if not products[0] > 0:
        return []
    r = products / products[0] * n / (n - np.arange(len(products)))
    inner = np.flatnonzero((r[1:-1] > r[:-2]) & (r[1:-1] >= r[2:]) & (r[1:-1] > CLEAR)) + 1
    first = inner[r[inner] >= NEARLY * r[inner].max(initial=0.0)][:1]
    highest = inner[np.argsort(-r[inner], kind="stable")][:3]
    return [int(lag) for lag in {*first.tolist(), *highest.tolist()} if lag > 1]
