"""Statistics of every unit of some data, from which figures and their intervals are computed."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unrolled.core.sharing import gathered

EXAMPLES = "examples"


class Ledger:
    """Statistics of every unit of some data (an example, or a piece of a stream), by metric: what intervals are from.

    They are added over units before the formula of the metric is applied; those of a unit that was not measured are
    NaN. `score` is the metric that `add` is about; `seconds` is how long texts may be written out.

    >>> ledger = Ledger("nats")
    >>> ledger.add(torch.tensor([2, 0, 2]), torch.tensor([1.0, 3.0, 4.0]), torch.tensor([1, 2, 1]))
    >>> ledger.statistics["nats"].tolist()
    [[3.0, 2.0], [nan, nan], [5.0, 2.0]]
    """

    def __init__(self, score: str, seconds: float = math.inf) -> None:
        self.score, self.seconds = score, seconds
        self.unit = EXAMPLES  # what the units are
        self.statistics: dict[str, Tensor] = {}  # [U, k]

    def add(self, units: Tensor, totals: Tensor, counts: Tensor, unit: str = "") -> None:
        """Add to the units (long, any shape, not negative) the total and count that stand in the same places.

        `unit` says what they are where they are not examples.
        """
        self.unit = unit or self.unit
        self.put(self.score, units.flatten(), torch.stack([totals.flatten().double(), counts.flatten().double()], 1))

    def put(self, metric: str, units: Tensor, statistics: Tensor) -> None:
        """Add statistics [n, k] of a metric to the units [n]."""
        units, statistics = units.cpu(), statistics.cpu().double()
        kept = self.statistics.get(metric, statistics[:0])
        missing = int(units.max()) + 1 - len(kept) if units.numel() else 0
        if missing > 0:
            kept = torch.cat([kept, kept.new_full((missing, kept.shape[1]), math.nan)])
        kept[units] = kept[units].nan_to_num(0.0)
        self.statistics[metric] = kept.index_add(0, units, statistics)

    def gather(self) -> None:
        """Take over what the processes that share the work have measured of other units (core/sharing.py)."""
        parts = gathered((self.unit, self.statistics))
        if len(parts) == 1:
            return
        self.statistics = {}
        for unit, statistics in parts:
            self.unit = self.unit if unit == EXAMPLES else unit  # a process without rows has not named it
            for metric, each in statistics.items():
                measured = (~each.isnan().all(1)).nonzero().flatten()
                self.put(metric, measured, each[measured])

    def tensors(self) -> dict[str, Tensor]:
        """The statistics of each metric, [U, k] with the same units for all."""
        n = max(map(len, self.statistics.values()), default=0)
        return {
            name: torch.cat([kept, kept.new_full((n - len(kept), kept.shape[1]), math.nan)])
            for name, kept in self.statistics.items()
        }

    @property
    def n_units(self) -> int:
        """Units whose score was measured."""
        kept = self.statistics.get(self.score)
        return 0 if kept is None else int((~kept.isnan().any(1)).sum())

    @property
    def left_out(self) -> bool:
        """Whether the score of some unit was not measured."""
        return bool(self.tensors()[self.score].isnan().any())
