"""The best continuations by blocks are those of an ordered look at all."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from unrolled.decode.likeliest import BLOCK, Continuations, likeliest, log_sum_exp, without
from unrolled.kernels import native


@pytest.fixture(autouse=True, params=["off", *(each for each in native.built() if each in native.allowed()[0])])
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    with native.using(request.param):
        yield request.param


@pytest.mark.parametrize("V", [2, BLOCK, 3 * BLOCK, 40 * BLOCK, 40 * BLOCK + 17])
@pytest.mark.parametrize(("L", "w"), [(1, 1), (3, 1), (1, 5), (4, 3)])
def test_they_are_the_largest_of_all(V: int, L: int, w: int) -> None:
    generator = torch.Generator().manual_seed(V + L + w)
    y = 3 * torch.randn(L * w, V, generator=generator)
    log_p = -5 * torch.rand(L, w, generator=generator).double().numpy()
    log_p[0, -1] = -math.inf if w > 1 else log_p[0, -1]
    best = likeliest(y, log_p, 7)
    every = (y.double().log_softmax(-1).view(L, w, V) + torch.from_numpy(log_p)[:, :, None]).flatten(1)
    wanted = every.topk(min(7, w * V))
    np.testing.assert_allclose(best.log_p, wanted.values.numpy(), atol=1e-6)
    real = best.log_p > -math.inf
    assert ((best.beam * V + best.token) == wanted.indices.numpy())[real].all()


def test_the_largest_may_all_stand_in_one_block_or_behind_the_last() -> None:
    V = 50 * BLOCK + 9
    y = torch.zeros(2, V)
    y[1, BLOCK : BLOCK + 6] = torch.arange(6, 0, -1).float()
    y[0, V - 2] = 30.0
    best = likeliest(y, np.zeros((1, 2)), 4)
    assert (best.beam[0, 0], best.token[0, 0]) == (0, V - 2)
    assert best.token[0, 1:].tolist() == [BLOCK, BLOCK + 1, BLOCK + 2]


@pytest.mark.parametrize("beam", [0, 1, 2])
def test_the_best_may_stand_behind_the_last_block_of_any_beam(beam: int) -> None:
    V = 50 * BLOCK + 9
    y = torch.zeros(6, V)  # two examples with three beams each
    y[3 + beam, V - 1] = 30.0
    best = likeliest(y, np.zeros((2, 3)), 2)
    assert (best.beam[1, 0], best.token[1, 0]) == (beam, V - 1)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_not_finite_come_first(bad: float) -> None:
    """So that the search sees them."""
    y = torch.zeros(2, 20)
    y[1, 3] = bad
    assert not np.isfinite(likeliest(y, np.zeros((1, 2)), 3).log_p[0, 0])


def test_double_precision_and_excluded_tokens() -> None:
    y = torch.randn(4, 300, generator=torch.Generator().manual_seed(1)).double()
    y[:, 7:] = -math.inf
    best = likeliest(y, np.zeros((2, 2)), 10)
    wanted = y.log_softmax(-1).view(2, 600).topk(10)
    np.testing.assert_allclose(best.log_p, wanted.values.numpy(), atol=1e-12)
    assert (best.token < 7).all()


def test_the_normaliser_is_as_good_as_in_double_precision() -> None:
    y = 8 * torch.randn(6, 9000, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(log_sum_exp(y), y.double().logsumexp(-1), rtol=0, atol=1e-7)


def test_what_is_banned_is_passed_over_and_missing_ones_are_dead() -> None:
    best = Continuations(np.array([[-1.0, -2.0, -3.0]]), np.array([[0, 1, 2]]), np.array([[7, 8, 9]]))
    kept = without(best, np.array([[True, False, False]]), 2)
    assert kept.token.tolist() == [[8, 9]]
    few = without(best, np.array([[True, True, False]]), 4)
    assert few.token[0, 0] == 9
    assert few.log_p[0].tolist() == [-3.0, -math.inf, -math.inf, -math.inf]
