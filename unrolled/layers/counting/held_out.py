"""How far held-out forecasts lie from what came: what a closed form leaves open is chosen by it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from unrolled.layers.counting.forecaster import Array, Span

PIECE = 1 << 22  # numbers of a forecast that are made at once
ROWS = 512  # series that are forecast together


def miss(layer: nn.Module, spans: Sequence[Span], horizon: int) -> float:
    """The mean square of the errors of held-out forecasts over whole horizons, in units of each series' changes.

    Series of different sizes count alike because their errors are divided by the mean square of one-step changes.
    """
    layer, total, count = copy.deepcopy(layer).double().eval(), 0.0, 0
    for begin in range(0, len(spans), ROWS):
        group = spans[begin : begin + ROWS]
        lengths, firsts = (np.array(each) for each in ([len(span.y) for span in group], [span.first for span in group]))
        y = _padded([span.y for span in group], lengths.max() + horizon)  # [R, T + H, D]
        seen = _padded([span.seen for span in group], lengths.max() + horizon)
        scale = np.stack([spread(span.y, span.seen) for span in group])[:, None, :, None]  # [R, 1, D, 1]
        x, state = torch.from_numpy(np.concatenate([y, seen], -1)), None
        n = max(1, PIECE // (horizon * y.shape[2] * len(group)))
        for start in range(0, int(lengths.max()) - horizon, n):
            end = min(start + n, int(lengths.max()) - horizon)
            with torch.no_grad():
                forecasts, state = layer(x[:, start:end], state)
            t = np.arange(start, end)
            counts = (t >= firsts[:, None] - 1) & (t < lengths[:, None] - horizon)  # [R, n]
            wanted, known = (_ahead(each[:, start + 1 : end + horizon], horizon) for each in (y, seen))  # [R, n, D, H]
            known = known & counts[:, :, None, None]
            said = forecasts.unflatten(2, (horizon, -1)).transpose(2, 3).numpy()  # [R, n, D, H]
            total += float(np.where(known, (said - wanted) ** 2 / scale, 0.0).sum())
            count += int(known.sum())
    return total / count if count else float("inf")


def _padded(parts: Sequence[NDArray[Any]], length: int) -> NDArray[Any]:
    """Arrays [T, D] below one another, with zeros behind them: [R, length, D]."""
    found = np.zeros((len(parts), length, *parts[0].shape[1:]), parts[0].dtype)
    for row, part in zip(found, parts):
        row[: len(part)] = part
    return found


def _ahead(rows: NDArray[Any], horizon: int) -> NDArray[Any]:
    return np.lib.stride_tricks.sliding_window_view(rows, horizon, axis=1)


def spread(y: Array, seen: NDArray[np.bool_]) -> Array:
    """The mean square [D] of the one-step changes of a series [T, D]; 1 where nothing changes."""
    both = seen[1:] & seen[:-1]
    squares = np.where(both, np.diff(y, axis=0), 0.0) ** 2
    found: Array = squares.sum(0) / np.maximum(both.sum(0), 1)
    return np.where(found > 0, found, 1.0)
