"""A race of models by successive halving (Jamieson & Talwalkar 2016): which of them continue after a rung, and for how
long.

    T      seconds that each run would have in all if no other were stopped
    T / 2  when runs are judged, on the same validation data; until then the learning rate is flat, whatever T will be
    half   of the rows continue, more where that takes no longer (processes would be idle) or where they are too close

What is freed makes T larger for those that continue, so a rung is never later than half of what a run has in the end,
and the rate can fall over the last half (docs/decisions/0002 and 0030).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unrolled.comparison.statistics import Sample, is_better
from unrolled.core.metric import Metric
from unrolled.training.rungs import Reached

HOLD = 0.5  # of T
SHORTEST = 20.0  # seconds of T in the first rung; in less, starting again costs more than stopping gains
FEWEST = 2  # rows that come to the end, at least
NEAR = 0.01  # of the score of the last row that continues: what is closer to it continues too
SPARE = 1.0  # seconds, at least, from one rung to the next
SCORE = Metric("score")


class Standing(NamedTuple):
    """A row at a rung, by its seeds."""

    label: str
    runs: Sequence[Reached]

    @property
    def score(self) -> float:
        return float(np.mean([run.score for run in self.runs]))

    @property
    def seconds(self) -> float:
        return float(np.mean([run.seconds for run in self.runs]))

    @property
    def sample(self) -> Sample:
        return Sample(np.array([run.units for run in self.runs], np.float64))  # [S, U, 2]


def n_kept(rows: int, seeds: int, at_once: int) -> int:
    """How many of these rows continue.

    >>> [n_kept(rows, 1, 1) for rows in (2, 3, 6, 9)], n_kept(6, 1, 2), n_kept(4, 1, 4)
    ([2, 2, 3, 5], 4, 4)
    """
    half = max(FEWEST, math.ceil(rows / 2))
    rounds = math.ceil(half * seeds / at_once)
    return min(rows, max(half, rounds * at_once // seeds))


def judged_after(time: float, used: float, rows: int, seeds: int, at_once: int) -> float | None:
    """Seconds of their time after which rows are judged; None: all that are left come to the end.

    >>> judged_after(40.0, 0.0, 6, 1, 2), judged_after(40.0, 0.0, 2, 1, 1), judged_after(22.0, 11.0, 6, 1, 2)
    (20.0, None, None)
    """
    until = HOLD * time
    return None if n_kept(rows, seeds, at_once) == rows or until < used + SPARE else round(until, 2)


def stopped(standings: Sequence[Standing], kept: int, rung: int, criterion: str) -> dict[str, str]:
    """The rows that are stopped, and why."""
    order = sorted(standings, key=lambda row: row.score)
    if kept >= len(order):
        return {}
    last = order[kept - 1]
    lost = [row for row in order[kept:] if not is_close(row, last)]
    return {
        row.label: f"stopped after {row.seconds:.3g} s, at rung {rung} of the race: {criterion} {row.score:.4g} on "
        f"validation data, behind {last.label} with {last.score:.4g}"
        for row in lost
    }


def is_close(row: Standing, last: Standing) -> bool:
    """Whether a row is as good as the last one that continues: nearly, or as far as validation data can tell."""
    if row.score - last.score <= NEAR * abs(last.score):
        return True
    one, other = last.sample, row.sample
    same = one.statistics.ndim == 3 and one.statistics.shape[1:] == other.statistics.shape[1:]
    return same and not is_better(SCORE, one, other)
