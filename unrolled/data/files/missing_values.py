"""Series with missing values: filled as asked for, or refused with their place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unrolled.core.errors import DataError


def fill(values: NDArray[np.float64], missing: str, place: str) -> NDArray[np.float64]:
    """[T, D] with every NaN replaced: by zero, by the value before it, or on a straight line between its neighbours.

    At an end, where `previous` or `line` have no neighbour, the nearest value stands in.

    >>> fill(np.array([[np.nan], [1.0], [np.nan], [3.0]]), "line", "here").ravel().tolist()
    [1.0, 1.0, 2.0, 3.0]
    """
    gaps = np.isnan(values)
    if not gaps.any() or missing == "error":  # the check of every series names the place of what is left
        return values
    if missing == "zero":
        return np.where(gaps, 0.0, values)
    steps = np.arange(len(values))
    filled = values.copy()
    for channel in range(values.shape[1]):
        known = steps[~gaps[:, channel]]
        if not len(known):
            raise DataError(f"{place}: channel {channel + 1} has no values; remove the series or the channel")
        column = values[known, channel]
        if missing == "line":
            filled[:, channel] = np.interp(steps, known, column)
        else:
            before = np.maximum(np.searchsorted(known, steps, side="right") - 1, 0)
            filled[:, channel] = column[before]
    return filled  # [T, D]
