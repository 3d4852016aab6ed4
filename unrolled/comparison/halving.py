"""A race of models by successive halving (Jamieson & Talwalkar 2016): which of them continue after a rung, and for how
long.

    T         seconds that each run would have in all if no other were stopped
    0.45 T    when runs are judged, on all validation data; until then the learning rate is flat, whatever T will be
    half      of the rows continue, more where that takes no longer (processes would be idle) and those close to the cut

What is freed makes T larger for those that continue, so a rung is never later than half of what a run has in the end,
and the rate can fall over the last half (docs/decisions/0002 and 0034). The runs of a row are its seeds or its folds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from unrolled.comparison.config import RACE, CompareConfig
from unrolled.comparison.statistics import Sample, is_better
from unrolled.core.front import option
from unrolled.core.metric import Metric
from unrolled.runs.config import RunConfig
from unrolled.training.rungs import Reached, can_wait

HOLD = 0.45  # of T
SHORTEST = 30.0  # seconds of T in the first rung; in less, starting again costs what stopping gains
FEWEST = 2  # rows that come to the end, at least
NEAR = 0.01  # of the score of the last row that continues: what is closer to it continues too
SPARE = 1.0  # seconds, at least, from one rung to the next
SCORE = Metric("score")


class Standing(NamedTuple):
    """A row at a rung: its runs, which differ by their seeds or by their folds."""

    label: str
    runs: Sequence[Reached]
    of_folds: bool = False

    @property
    def score(self) -> float:
        return float(np.mean([run.score for run in self.runs]))

    @property
    def seconds(self) -> float:
        return float(np.mean([run.seconds for run in self.runs]))

    @property
    def sample(self) -> Sample | None:
        """The units of all folds, or the sums over seeds of those units that all have; None: they do not fit."""
        each = [np.array(run.units, np.float64).reshape(-1, 2) for run in self.runs]  # [U, 2]
        if self.of_folds:
            units = np.concatenate(each)
        elif len({len(one) for one in each}) == 1:
            units = np.sum(each, axis=0)
        else:
            return None
        return Sample(np.where(units[:, 1:] > 0, units, np.nan)[None]) if len(units) else None  # [1, U, 2]


def without_race(asked: CompareConfig, configs: Mapping[str, RunConfig]) -> tuple[CompareConfig, list[str]]:
    """What is asked with equal shares where some model cannot be trained in rungs, and what is to be said about it."""
    late = [name for name, config in configs.items() if not can_wait(config)]
    if asked.match != RACE or asked.steps is not None or not late:
        return asked, []
    why = f"the learning rate of {', '.join(late)} depends on the length of the run"
    return asked.model_copy(update={"match": "time"}), [
        f"no race, every run has the same time: {why} ({option('schedule', configs[late[0]].optimiser.schedule)})"
    ]


def n_kept(rows: int, runs: int, at_once: int) -> int:
    """How many of these rows, of so many runs each, continue.

    >>> [n_kept(rows, 1, 1) for rows in (2, 3, 6, 9)], n_kept(6, 1, 2), n_kept(4, 1, 4)
    ([2, 2, 3, 5], 4, 4)
    """
    half = max(FEWEST, math.ceil(rows / 2))
    rounds = math.ceil(half * runs / at_once)
    return min(rows, max(half, rounds * at_once // runs))


def judged_after(time: float, used: float, rows: int, runs: int, at_once: int) -> float | None:
    """Seconds of their time after which rows are judged; None: all that are left come to the end.

    >>> judged_after(40.0, 0.0, 6, 1, 2), judged_after(40.0, 0.0, 2, 1, 1), judged_after(22.0, 11.0, 6, 1, 2)
    (18.0, None, None)
    """
    until = HOLD * time
    return None if n_kept(rows, runs, at_once) == rows or until < used + SPARE else round(until, 2)


def stopped(standings: Sequence[Standing], kept: int, rung: int) -> dict[str, str]:
    """The rows that are stopped, and why."""
    order = sorted(standings, key=lambda row: row.score)
    if kept >= len(order):
        return {}
    last = order[kept - 1]
    lost = [row for row in order[kept:] if not is_close(row, last)]
    return {
        row.label: f"stopped after {row.seconds:.3g} s at rung {rung} of the race: {row.runs[0].criterion} "
        f"{row.score:.4g} on validation data, behind {last.label} with {last.score:.4g}"
        for row in lost
    }


def is_close(row: Standing, last: Standing) -> bool:
    """Whether a row is as good as the last one that continues: nearly, or as far as validation data can tell."""
    if row.score - last.score <= NEAR * abs(last.score):
        return True
    one, other = last.sample, row.sample
    if one is None or other is None or one.statistics.shape != other.statistics.shape:
        return False
    return not is_better(SCORE, one, other)
