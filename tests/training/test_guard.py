"""NaN and infinity: skip, roll back with a smaller rate, give up."""

from __future__ import annotations

import math

import pytest

from unrolled.core.errors import Diverged
from unrolled.training.guard import CUT, ROLLBACKS, SKIPS, Guard


@pytest.mark.parametrize(("loss", "norm"), [(math.nan, 1.0), (1.0, math.inf), (math.inf, math.nan)])
def test_one_bad_batch_is_skipped_and_forgiven(loss: float, norm: float) -> None:
    guard = Guard()
    assert guard.judge(3, loss, norm) == "skip"
    assert guard.judge(4, 1.0, 1.0) == "fine"
    assert guard.skipped == 0


def test_many_in_a_row_roll_back_then_stop() -> None:
    guard = Guard()
    for rollback in range(1, ROLLBACKS + 1):
        assert [guard.judge(0, math.nan, 1.0) for _ in range(SKIPS + 1)] == ["skip"] * SKIPS + ["roll back"]
        assert guard.scale == pytest.approx(CUT**rollback)
    for _ in range(SKIPS):
        guard.judge(0, math.nan, 1.0)
    with pytest.raises(Diverged, match="batch 77"):
        guard.judge(77, math.nan, 1.0)


def test_its_memory_survives_a_checkpoint() -> None:
    guard = Guard(skipped=2, rollbacks=1, scale=0.3)
    assert Guard(**guard.state()) == guard
