"""The chain of bits against counts made one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unrolled.core.errors import DataError
from unrolled.core.spec import Sizes
from unrolled.data.sources.pianoroll import examples_of_rolls
from unrolled.models.key_chain import Config, make

RANDOM = np.random.default_rng(0)
ROLLS = [(RANDOM.random((n, 6)) < 0.4).astype(np.uint8) for n in (2, 30, 1, 17)]


@pytest.mark.parametrize("ahead", [1, 3])
@pytest.mark.parametrize("order", [0, 1])
def test_probabilities_are_counts(order: int, ahead: int) -> None:
    layer = make(Config(order=order), Sizes(6, 6)).double()
    layer.solve(examples_of_rolls(ROLLS), ahead=ahead)
    n = np.full((2, 2, 6), 0.5)
    for roll in ROLLS:
        whole = np.concatenate([np.zeros((1, 6), np.uint8), roll])
        for t in range(len(whole) - ahead):
            for k in range(6):
                n[whole[t, k], whole[t + ahead, k], k] += 1
    if order == 0:
        n[:] = n.sum(0) - 0.5
    x = torch.tensor([[0.0] * 6, [1.0] * 6]).double()[None]
    p = layer(x)[0][0].sigmoid().numpy()
    np.testing.assert_allclose(p, n[:, 1] / n.sum(1), rtol=1e-6)


def test_what_cannot_be_counted_is_said() -> None:
    with pytest.raises(DataError, match="nothing to count"):
        make(Config(), Sizes(6, 6)).solve(examples_of_rolls(ROLLS[2:3]), ahead=2)
    with pytest.raises(DataError, match="as many bits"):
        make(Config(), Sizes(6, 5)).solve(examples_of_rolls(ROLLS))
