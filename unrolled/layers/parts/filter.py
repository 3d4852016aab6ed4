"""A linear filter of a series, fitted in closed form."""

from __future__ import annotations

from torch.nn import functional as F

from unrolled.core.task import Known
from unrolled.layers.counting.autoregression import Autoregression
from unrolled.layers.parts.assembled import Reader


class Filter(Reader):
    """An autoregression fitted to targets at each step: a linear filter of x_{t+d-s+1} .. x_{t+d}, d the delay."""

    body: Autoregression

    def __init__(self, delay: int, body: Autoregression) -> None:
        super().__init__(None, body, delay=delay)

    def solve(self, batches: Known, held_out: Known = ()) -> None:
        """From series, mask and targets [B, T, D']: the weights of the least mean square of all that is predicted.

        The target of step t is predicted d steps later; zeros stand before the start and behind the end.
        """
        d, before, series, targets = self.delay, self.body.order - 1, [], []
        for x, mask, y in batches:
            for row, goal, n in zip(x, y, mask.sum(1).tolist()):
                series.append(F.pad(row[:n], (0, 0, before, d))[d:])  # [s - 1 + n, D]
                targets.append(F.pad(goal[:n], (0, 0, before, 0)))  # [s - 1 + n, D']
        self.body.solve(series, targets, ahead=0)
