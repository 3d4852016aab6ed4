"""Long examples in chunks and crops: every position once, the state carried where it is, a function of the step."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from unrolled.core.batch import TARGET
from unrolled.core.tokens import EMPTY
from unrolled.data.collate import BESIDE, NEXT, Form, collate
from unrolled.data.examples import INPUT, Examples, ragged
from unrolled.data.long_examples import Chunks, Crops, example_batches
from unrolled.data.sampler import Pooled

LENGTHS = (3, 50, 7, 21, 8, 8, 33, 64, 1)


def lines() -> Examples:
    """Line i has the tokens 100 i + 4, 100 i + 5, .."""
    return Examples({TARGET: ragged([100 * i + 4 + np.arange(n) for i, n in enumerate(LENGTHS)])})


def vectors() -> Examples:
    random = np.random.default_rng(0)
    return Examples({TARGET: ragged([random.integers(0, 2, (n, 5)).astype(np.uint8) for n in LENGTHS])})


@pytest.mark.parametrize("carried", [True, False])
@pytest.mark.parametrize("make", [lines, vectors])
def test_an_epoch_of_chunks_has_every_target_once(make, carried):
    examples = make()
    form = NEXT if make is lines else Form(TARGET, ahead=1)
    sampler, again = (Chunks(examples, 4, 8, form, carried, seed=3) for _ in range(2))
    seen, first = [], set()
    for step in range(sampler.steps_per_epoch):
        batch = sampler.batch(step)
        assert batch.x.shape[1] <= 8
        assert batch.x.shape[0] <= 4
        assert torch.equal(batch.x, again.batch(step).x)
        real = batch.real
        seen += batch.y[real].tolist()
        first |= {int(x[0]) for x in batch.x if x.ndim == 1}
        assert batch.fresh or carried
    whole = collate(examples, np.arange(len(LENGTHS)), form)
    assert sorted(map(str, seen)) == sorted(map(str, whole.y[whole.real].tolist()))
    assert sampler.batch(sampler.steps_per_epoch).rows.tolist() is not None  # another epoch begins
    total = int(whole.real.sum())
    assert abs(sampler.tokens_per_step * sampler.steps_per_epoch - total) <= sampler.steps_per_epoch


def test_carried_chunks_of_the_same_rows_follow_one_another():
    sampler = Chunks(lines(), 4, 8, NEXT, carried=True, seed=1)
    before = None
    for step in range(sampler.steps_per_epoch):
        batch = sampler.batch(step)
        if not batch.fresh:
            assert before is not None
            assert batch.rows.tolist() == before.rows.tolist()
            for old, new in zip(before.x, batch.x):  # each row goes on with the token behind the last
                if new[0] != EMPTY:
                    assert int(new[0]) == int(old[-1]) + 1 or int(old[-1]) < 4
        before = batch
    assert sum(sampler.batch(step).fresh for step in range(sampler.steps_per_epoch)) == 3  # groups of four of nine


def test_crops_are_stretches_that_differ_between_epochs():
    examples = Examples({INPUT: ragged([np.arange(n) + 4 for n in LENGTHS])}, {TARGET: np.arange(len(LENGTHS))})
    sampler = Crops(examples, 4, 10, BESIDE, seed=2)
    stretches: dict[int, set[int]] = {}
    for step in range(4 * sampler.steps_per_epoch):
        batch = sampler.batch(step)
        for row, x, mask in zip(batch.rows.tolist(), batch.x, batch.mask):
            values = x[mask]
            assert len(values) == min(LENGTHS[row], 10)
            assert torch.equal(values, values[0] + torch.arange(len(values)))
            stretches.setdefault(row, set()).add(int(values[0]))
        assert batch.y.tolist() == batch.rows.tolist()
    assert len(stretches) == len(LENGTHS)
    assert len(stretches[7]) > 1
    assert stretches[0] == {4}


def test_crops_cut_targets_of_each_step_alike():
    fields = {INPUT: ragged([np.arange(n) + 4 for n in LENGTHS]), TARGET: ragged([np.arange(n) for n in LENGTHS])}
    sampler = Crops(Examples(fields), 4, 10, BESIDE)
    for step in range(sampler.steps_per_epoch):
        batch = sampler.batch(step)
        assert torch.equal(batch.y[batch.mask] + 4, batch.x[batch.mask])


def test_short_examples_are_not_cut():
    batching = SimpleNamespace(batch_size=4, chunk=64)
    assert type(example_batches(lines(), batching, NEXT, True, 0)) is Pooled
    batching.chunk = None
    assert type(example_batches(lines(), batching, NEXT, True, 0)) is Pooled
    batching.chunk = 63
    assert type(example_batches(lines(), batching, NEXT, True, 0)) is Chunks
