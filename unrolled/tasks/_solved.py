"""Models with a closed form on series: the data of a fit, and copies that are fitted to less of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.core import task
from unrolled.core.causal import Causal
from unrolled.core.errors import DataError
from unrolled.data.examples import Examples
from unrolled.data.time_series import windows
from unrolled.data.time_series.codec import SeriesCodec
from unrolled.data.time_series.prepare import FIRST, LAST, SCALE
from unrolled.data.time_series.windows import Cutter, Spots

EARLIER = (1 / 2, 3 / 4)  # shares of the training span behind which intervals are also fitted
IF_SHORT = (2 / 3, 5 / 6)  # where half of it is not enough for a fit like that of the whole
ENOUGH = 10  # seasons, and horizons
SEASONS, LEAST = 4, 64  # seasons and steps of a series at least, where a model is fitted to a share of the data
CALIBRATED_ON = 200_000  # steps at most that a model is fitted to for this

Numbers = NDArray[np.float64]
Solve = Callable[[Any, Examples, float], Any]


def is_solved(model: Any) -> bool:
    return any(isinstance(module, task.Solvable) for module in model.modules())


def reach_of(model: Any) -> int | None:
    """How many steps a forecast of a closed form depends on; None: on all."""
    fields = [module.receptive_field for module in model.modules() if isinstance(module, Causal)]
    return fields[0] if fields else None


def n_steps(section: Examples) -> int:
    return int((np.asarray(section.columns[LAST]) - np.asarray(section.columns[FIRST])).sum())


def newest(last: NDArray[np.int64], share: float, codec: SeriesCodec) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A share of the training spans of series: which of them, and the step from which on each. Series are left out
    rather than cut to less than a few seasons."""
    if share >= 1:
        return np.arange(len(last)), np.zeros_like(last)
    least = min(max(codec.lookback, SEASONS * codec.season, LEAST) + codec.horizon, int(last.max()))
    steps = np.minimum(last, np.maximum(np.ceil(share * last).astype(np.int64), least))
    able = np.flatnonzero(last >= least)
    n = min(len(able), max(1, int(share * last.sum() / steps[able].mean())))
    some = able[np.arange(n) * len(able) // n]
    return some, last[some] - steps[some]


def arrays_of(
    section: Examples, codec: SeriesCodec, units: bool, begin: NDArray[np.int64], some: NDArray[np.int64] | None = None
) -> list[Numbers]:
    """Each series, or some, from a step up to the end of its span as inputs [T, d_in], its values encoded or in the
    units of the data."""
    cutter, found = Cutter(section, codec, every=False), []
    scales, D = np.asarray(section.columns[SCALE]), codec.d_step
    rows = np.arange(len(cutter.limits)) if some is None else some
    for i, first, last in zip(rows.tolist(), begin.tolist(), cutter.limits[rows].tolist()):
        x = cutter.inputs(i, first, last).astype(np.float64)
        if units:
            x[:, :D] = scales[i, 0] + scales[i, 1] * x[:, :D]
        found.append(x)
    return found


def earlier(model: Any, train: Examples, codec: SeriesCodec, solve: Solve) -> Iterator[tuple[Any, Examples, Spots]]:
    """Copies of a model with a closed form, each fitted to the beginning of the training span, and spots behind it;
    what a fit leaves open is chosen on validation data as usual. None where there is too little."""
    last = np.asarray(train.columns[LAST])
    enough = EARLIER[0] * n_steps(train) >= ENOUGH * max(codec.season, codec.horizon)
    shares = EARLIER if enough else IF_SHORT
    for share, until in zip(shares, (*shares[1:], 1.0)) if is_solved(model) else ():
        begun = (share * last).astype(np.int64)
        fitted, behind = _span(train, np.zeros_like(last), begun), _span(train, begun, (until * last).astype(np.int64))
        spots = windows.origins(behind, codec)
        copied = copy.deepcopy(model)
        try:
            solvable = next(each for each in copied.modules() if isinstance(each, task.Solvable))
            solve(solvable, fitted, task.share_of(n_steps(fitted), CALIBRATED_ON))
        except DataError:
            continue
        if len(spots):
            yield copied, behind, spots


def _span(section: Examples, first: NDArray[np.int64], last: NDArray[np.int64]) -> Examples:
    return Examples(section.fields, {**section.columns, FIRST: first, LAST: last})
