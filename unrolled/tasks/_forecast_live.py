"""New values of a series one by one, each with a forecast of the next steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.core.causal import Conditional, Encoder, decoder_of
from unrolled.core.emission import Numeric
from unrolled.core.errors import DataError, UsageError
from unrolled.core.flow import Flow
from unrolled.core.front import option
from unrolled.core.state import State
from unrolled.data.files.cell_values import as_number, as_series, is_gap, shown
from unrolled.data.time_series.codec import SeriesCodec
from unrolled.objectives.forecasts import INTERVALS, MEDIAN
from unrolled.tasks._inside import plain
from unrolled.tasks._paths import drawn_from

Numbers = NDArray[np.float64]


def flow_of_values(
    model: Any,
    codec: SeriesCodec,
    quantiles: Callable[[Tensor, Numbers], tuple[Numbers, Numbers]],
    condition: str | None,
    rolled: tuple[Numeric, int] | None = None,
) -> Flow:
    """A model that is fed the values of one series, `condition`; `rolled` is what the outputs of a model of one step
    mean, and how many paths are drawn with it, where the horizon is not predicted at once."""
    if isinstance(model, Encoder):
        raise UsageError(
            "this run normalises the whole window before it is read, so it cannot run live; train with "
            f"{option('relative', 'last')}"
        )
    if rolled is not None and isinstance(model, Conditional):
        raise UsageError(
            "this run reads a whole window before it forecasts, so it cannot run live; train a causal model with "
            f"{option('by', 'direct')} or {option('by', 'rollout')}"
        )
    if codec.past or codec.d_known or codec.static or codec.calendar:
        raise UsageError("this run has covariates, which are not known from values alone, so it cannot run live")
    if condition is None and len(codec.scales) > 1:
        raise UsageError(f"this run has {len(codec.scales)} series: name one with {option('condition')}")
    name = condition if condition is not None else next(iter(codec.scales))
    if name not in codec.scales:
        raise UsageError(f"there is no series {shown(name)} in this run; it has {', '.join([*codec.scales][:12])}")
    scale = np.array(codec.scales[name])  # [3, D]
    low, high = INTERVALS[80]

    def told(y: Tensor, _: Tensor) -> dict[str, Any]:
        """y [D'], or paths [n, H D]"""
        q = codec.told(quantiles(y[None], scale[None])[0][:, 0], scale)
        return {"forecast": plain(q[MEDIAN]), "low_80": plain(q[low]), "high_80": plain(q[high])}

    def onward(x: Tensor, state: State) -> dict[str, Any]:
        """Of the paths that continue x [1, 1, d_in]."""
        assert rolled is not None
        ahead = x.new_ones(1, codec.horizon, x.shape[2] - codec.d_step)  # beside values that are fed back: not missing
        beside = torch.cat([x[:, :, codec.d_step :], ahead], dim=1)  # [1, 1 + H, .]
        one, first = torch.ones(1, dtype=torch.long), torch.zeros(1, dtype=torch.long)
        start = x[:, :, : codec.d_step]
        return told(drawn_from((decoder_of(model), state), start, one, beside, rolled[0], rolled[1], first)[0], x)

    def line_of(line: str, place: str) -> Any:
        words = line.replace(",", " ").split()
        return [np.nan if is_gap(word) else as_number(word, place) for word in words] or None

    source = torch.from_numpy(scale[None, :2].astype(np.float32))
    state = model.condition(source, None) if decoder_of(model) is not model else None
    blank = torch.zeros(1, 1, codec.d_in)
    return Flow(
        decoder_of(model), lambda row, place: _encoded(row, place, codec, scale), told, line_of, blank, state,
        onward=None if rolled is None else onward,
    )  # fmt: skip


def _encoded(row: Any, place: str, codec: SeriesCodec, scale: Numbers) -> Tensor:
    """One step [1, 1, d_in]; NaN is a missing value."""
    D = codec.d_step
    values = as_series(np.atleast_1d(np.asarray(row, np.float64))[None], place)
    if values.shape != (1, D):
        raise DataError(f"{place}: found {values.shape[1]} numbers, expected {D}")
    seen = ~np.isnan(values[0])
    if np.isinf(values).any():
        raise DataError(f"{place}: found an infinite number, expected a finite one")
    if not codec.observed and not seen.all():
        raise DataError(f"{place}: a value is missing, but this run was trained without missing values")
    if codec.transform == "log":
        if (values[0][seen] <= 0).any():
            raise DataError(
                f"{place}: found {values[0][seen].min():g}, but this run takes logarithms, of numbers above 0"
            )
        values = np.log(values)
    x = np.zeros((1, 1, codec.d_in), np.float32)
    x[0, 0, :D] = np.where(seen, (values[0] - scale[0]) / scale[1], 0.0)
    if codec.observed:
        x[0, 0, D : 2 * D] = seen
    return torch.from_numpy(x)
