"""Batches of vectors by brute force: every frame is predicted once, from a start of zeros."""

from __future__ import annotations

import numpy as np
import pytest

from unrolled.core.batch import TARGET
from unrolled.data.collate import NEXT, Form, collate
from unrolled.data.sampler import Pooled, pooled_batches
from unrolled.data.sources.pianoroll import examples_of_rolls

RANDOM = np.random.default_rng(0)
ROLLS = [(RANDOM.random((n, 5)) < 0.5).astype(np.uint8) for n in (4, 1, 7, 3, 3, 9)]


@pytest.mark.parametrize("ahead", [1, 2, 4])
def test_input_and_target_are_shifted(ahead: int) -> None:
    batch = collate(examples_of_rolls(ROLLS), np.arange(6), Form(TARGET, ahead))
    assert batch.y_mask is not None
    assert batch.x.shape == batch.y.shape == (6, 10 - ahead, 5)
    for i, roll in enumerate(ROLLS):
        whole = np.concatenate([np.zeros((1, 5)), roll])
        n = max(len(whole) - ahead, 0)
        assert batch.y_mask[i].tolist() == [t < n for t in range(10 - ahead)]
        np.testing.assert_array_equal(batch.y[i, :n], whole[ahead:])
        np.testing.assert_array_equal(batch.x[i, :n], whole[:n])
        assert not batch.x[i, max(n, 1) :].any() and not batch.y[i, n:].any()
    assert batch.n_targets == sum(max(len(roll) + 1 - ahead, 0) for roll in ROLLS)


def test_an_epoch_sees_every_frame_once_and_is_a_function_of_the_step() -> None:
    sampler, again = (Pooled(examples_of_rolls(ROLLS), 4, NEXT, seed=3) for _ in range(2))
    assert sampler.steps_per_epoch == 2
    assert sampler.tokens_per_step == round(27 / 2)
    for epoch in (0, 1):
        batches = [sampler.batch(2 * epoch + i) for i in range(2)]
        assert sorted(int(row) for batch in batches for row in batch.rows) == list(range(6))
        assert sum(batch.n_targets for batch in batches) == sum(map(len, ROLLS))
        for i, batch in enumerate(batches):
            np.testing.assert_array_equal(batch.x, again.batch(2 * epoch + i).x)


def test_batches_for_figures_are_of_like_lengths() -> None:
    batches = list(pooled_batches(examples_of_rolls(ROLLS), 2, NEXT))
    assert [batch.x.shape[1] for batch in batches] == [3, 4, 9]
    moved = batches[0].to("cpu")
    assert moved.y_mask is not None
