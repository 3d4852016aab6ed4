"""Missing values are held and seasons repeated, as a loop over the definition says."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from unrolled.layers.counting.held import held_after, hold, nothing_held, repeated


def by_definition(y: NDArray[np.float64], seen: NDArray[np.bool_], m: int) -> list[float]:
    z: list[float] = []
    clock = 0
    for value, known in zip(y, seen):
        clock += clock > 0 or known
        if known:
            z.append(value)
        elif clock == 0:
            z.append(0.0)
        else:
            z.append(z[-m] if clock > m else z[-1])
    return z


@pytest.mark.parametrize("m", [1, 2, 3, 7])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_values_are_held_in_any_pieces(m: int, share: float) -> None:
    random = np.random.default_rng(m)
    y = torch.from_numpy(random.normal(size=(4, 40)))
    seen = torch.from_numpy(random.random((4, 40)) >= share)
    seen[1, :11] = False
    seen[2] = False
    state, found, clocks = nothing_held(y, m + 2), [], []
    for piece, known in zip(y.split([1, 17, 2, 20], 1), seen.split([1, 17, 2, 20], 1)):
        line, clock = hold(torch.where(known, piece, 1e6), known, state, m)
        assert line.shape[1] == m + 2 + piece.shape[1]
        found.append(line[:, m + 2 :])
        clocks.append(clock)
        state = held_after(line, clock, m + 2)
    z = torch.cat(found, 1)
    for row in range(4):
        assert z[row].tolist() == by_definition(y[row].numpy(), seen[row].numpy(), m)
    started = (seen.cumsum(1) > 0).cumsum(1)
    assert torch.equal(torch.cat(clocks, 1), started)
    assert torch.equal(state.line, torch.cat([z.new_zeros(4, m + 2), z], 1)[:, -m - 2 :])


def test_a_season_is_repeated_once_it_was_read() -> None:
    y = torch.arange(1.0, 8.0)[None]
    line, clock = hold(y, y > 0, nothing_held(y, 3), 3)
    found = repeated(line, clock, 3, 5)
    assert found[0, 1].tolist() == [2.0] * 5
    assert found[0, 2].tolist() == [1.0, 2.0, 3.0, 1.0, 2.0]
    assert found[0, 6].tolist() == [5.0, 6.0, 7.0, 5.0, 6.0]
