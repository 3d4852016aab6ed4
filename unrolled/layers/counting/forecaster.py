"""What the models that are fitted in closed form to forecasts share: how x is read, how y is laid out, and the data.

    x [B, T, d_in]: D values, then (where `observed`) D columns that are 1 where the value was observed, then others
    y [B, T, H * D]: at t the forecasts of steps t+1 .. t+H, from x up to t; y[..., h * D + d]

`Apart` makes a series of its own of each of the D values, so that one layer of single series serves all; `Jointly`
hands them over side by side. Parameters are shared by all series of the data, and by all D of them under `Apart`;
states are per series.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.core.causal import Causal, tick_multiply_adds
from unrolled.core.spec import Sizes
from unrolled.core.state import State, join_rows, split_rows

Array = NDArray[np.float64]


class Span(NamedTuple):
    """A series to fit to, or, from step `first` on, to choose by: forecasts are made from step first - 1 on."""

    y: Array  # [T, D]
    seen: NDArray[np.bool_]  # [T, D], whether a value was observed
    first: int = 0


class Fits(Protocol):
    """A layer of series x [R, T, 2 D] (values, whether observed) -> [R, T, H * D] that can be fitted."""

    def solve(self, spans: Sequence[Span], held_out: Sequence[Span]) -> dict[str, Any]: ...


class Forecaster(Causal):
    """A layer of forecasts with the columns of a task around it."""

    d_in: int
    layer: Causal

    def __init__(self, sizes: Sizes, layer: Causal, reach: int | None = None) -> None:
        """`reach`: how many values a forecast depends on where all were observed; None: on all."""
        super().__init__()
        self.d_in, self.d_out = sizes.d_in, sizes.d_out
        self.d_step, self.horizon, self.observed = sizes.d_step or sizes.d_out, sizes.horizon, sizes.observed
        self.layer = layer
        self.receptive_field = None if sizes.observed else reach

    def read(self, x: Tensor) -> Tensor:
        """Values and whether they were observed, side by side: [B, T, 2 D]."""
        D = self.d_step
        y = x[..., :D]
        return torch.cat([y, x[..., D : 2 * D] if self.observed else torch.ones_like(y)], -1)

    def spans(self, data: Iterable[tuple[NDArray[Any], int]]) -> Iterator[Span]:
        """Arrays [T, d_in] as spans; values that were not observed are not looked at."""
        D = self.d_step
        for rows, first in data:
            x = np.asarray(rows, np.float64)
            if self.observed:
                seen = x[:, D : 2 * D] > 0.5
                yield Span(np.where(seen, x[:, :D], 0.0), seen, first)
            else:  # long series are not copied
                yield Span(x[:, :D], np.broadcast_to(np.True_, (len(x), D)), first)

    def solve(
        self, series: Sequence[NDArray[Any]], held_out: Sequence[tuple[NDArray[Any], int]] = ()
    ) -> dict[str, Any]:
        """Fit to series [T, d_in] of training data; what data leaves open is chosen on forecasts of held-out data.

        Of held-out data (rows, first) forecasts made from position first - 1 on count. Returns what was chosen.
        """
        layer: Fits = self.layer  # type: ignore[assignment]
        return layer.solve([*self.spans((rows, 0) for rows in series)], [*self.spans(held_out)])


class Jointly(Forecaster):
    """All D values are read by one layer [B, T, 2 D] -> [B, T, H * D]."""

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        y: Tensor
        y, state = self.layer(self.read(x), state)
        return y, state


class Apart(Forecaster):
    """Each of the D values is a series of its own for one layer [R, T, 2] -> [R, T, H]."""

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        D, H = self.d_step, self.horizon
        rows = self.read(x).unflatten(2, (2, D)).permute(0, 3, 1, 2).flatten(0, 1)  # [B * D, T, 2]
        y, state = self.layer(rows, join_rows(state))  # [B * D, T, H]
        y = y.unflatten(0, (-1, D)).permute(0, 2, 3, 1).reshape(*x.shape[:2], H * D).contiguous()  # [B, T, H * D]
        return y, split_rows(state, D)

    def spans(self, data: Iterable[tuple[NDArray[Any], int]]) -> Iterator[Span]:
        for y, seen, first in super().spans(data):
            for d in range(self.d_step):
                yield Span(y[:, d : d + 1], seen[:, d : d + 1], first)

    def tick_multiply_adds(self, position: int) -> int:
        return self.d_step * tick_multiply_adds(self.layer, position)
