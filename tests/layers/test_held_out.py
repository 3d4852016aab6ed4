"""What held-out forecasts miss, against a loop over origins."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from unrolled.core.causal import Causal
from unrolled.core.state import State
from unrolled.layers.counting import held_out
from unrolled.layers.counting.forecaster import Span
from unrolled.layers.counting.held_out import miss, spread


class Counted(Causal):
    """y_{t+h} = (the sum of all that was observed) + h."""

    d_in, d_out = 2, 3

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        before = torch.zeros_like(x[:, 0, 0]) if state is None else state
        total = before[:, None] + (x[..., 0] * x[..., 1]).cumsum(1)  # [R, T]
        return total[..., None] + torch.arange(1, 4).to(x), total[:, -1]


@pytest.mark.parametrize(("piece", "rows"), [(1 << 22, 512), (18, 512), (18, 1)])
def test_a_miss_is_the_mean_square_over_whole_horizons(piece: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_out, "PIECE", piece)
    monkeypatch.setattr(held_out, "ROWS", rows)
    random = np.random.default_rng(0)
    sizes = ((30, 20), (9, 0), (25, 25), (12, 3))
    spans = [Span(random.normal(size=(n, 1)), random.random((n, 1)) > 0.2, first) for n, first in sizes]
    total, count = 0.0, 0
    for y, seen, first in spans:
        for t in range(max(first - 1, 0), len(y) - 3):
            said = (y * seen)[: t + 1].sum() + np.arange(1, 4)
            known = seen[t + 1 : t + 4, 0]
            total += (((said - y[t + 1 : t + 4, 0]) ** 2)[known]).sum() / spread(y, seen)[0]
            count += int(known.sum())
    assert miss(Counted(), spans, 3) == pytest.approx(total / count)


def test_without_a_whole_horizon_there_is_no_miss() -> None:
    assert miss(Counted(), [Span(np.ones((3, 1)), np.ones((3, 1), bool))], 3) == float("inf")
    assert miss(Counted(), [], 3) == float("inf")


def test_the_spread_of_a_constant_is_one() -> None:
    y = np.array([[1.0, 5.0], [3.0, 5.0], [0.0, 5.0]])
    assert spread(y, np.array([[1, 1], [1, 1], [0, 1]], bool)).tolist() == [4.0, 1.0]
