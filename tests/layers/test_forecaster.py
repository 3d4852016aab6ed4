"""Columns of a task, series of a layer: how x is read, how y is laid out and what is fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from unrolled.core.causal import Causal
from unrolled.core.spec import Sizes
from unrolled.core.state import State
from unrolled.layers.counting.forecaster import Apart, Jointly, Span


class Counted(Causal):
    """y_{t+h} = (the sum of all that was observed) + h, of every value; it keeps what it is fitted to."""

    def __init__(self, horizon: int, width: int = 1) -> None:
        super().__init__()
        self.d_in, self.d_out, self.horizon = 2 * width, horizon * width, horizon
        self.given: tuple[Sequence[Span], Sequence[Span]] = ((), ())

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        y, seen = x.chunk(2, -1)
        before = torch.zeros_like(y[:, 0]) if state is None else state
        total = before[:, None] + (y * seen).cumsum(1)  # [R, T, D]
        steps = torch.arange(1, self.horizon + 1).to(x)[:, None]
        return (total[:, :, None] + steps).flatten(2), total[:, -1]

    def solve(self, spans: Sequence[Span], held_out: Sequence[Span]) -> dict[str, Any]:
        self.given = spans, held_out
        return {"n": len(spans)}


SIZES = Sizes(5, 6, horizon=3, d_step=2, observed=True)


@pytest.mark.parametrize("model", [Apart(SIZES, Counted(3)), Jointly(SIZES, Counted(3, 2))])
def test_steps_stand_one_after_the_other_and_covariates_are_not_read(model: Apart | Jointly) -> None:
    x = torch.randn(2, 4, 5)
    x[..., 2:4] = (torch.rand(2, 4, 2) > 0.5).float()
    y, state = model(x)
    total = (x[..., :2] * x[..., 2:4]).cumsum(1)  # [B, T, D]
    for h in range(3):
        for d in range(2):
            torch.testing.assert_close(y[..., h * 2 + d], total[..., d] + h + 1)
    assert state.shape[:2] == (2, 2)


def test_without_columns_for_it_everything_was_observed() -> None:
    model = Apart(Sizes(3, 4, horizon=2, d_step=2), Counted(2))
    y, _ = model(torch.ones(1, 1, 3))
    assert y.tolist() == [[[2.0, 2.0, 3.0, 3.0]]]


def test_spans_hold_what_was_observed() -> None:
    rows = np.array([[1.0, 2.0, 1.0, 0.0, 9.0], [3.0, 4.0, 0.0, 1.0, 9.0]])
    apart, jointly = Counted(3), Counted(3, 2)
    assert Apart(SIZES, apart).solve([rows], [(rows, 1)]) == {"n": 2}
    assert Jointly(SIZES, jointly).solve([rows]) == {"n": 1}
    (first, second), held_out = apart.given
    assert first.y.tolist() == [[1.0], [0.0]]
    assert second.seen.tolist() == [[False], [True]]
    assert [span.first for span in held_out] == [1, 1]
    assert jointly.given[0][0].y.tolist() == [[1.0, 0.0], [0.0, 4.0]]
