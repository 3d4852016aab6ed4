"""Which examples a step has: every one once an epoch, alike ones together, a function of the step alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unrolled.core.batch import TARGET
from unrolled.core.errors import DataError
from unrolled.core.tokens import EMPTY
from unrolled.data.collate import BESIDE, n_targets
from unrolled.data.examples import INPUT, Examples, ragged
from unrolled.data.pairs_prepare import examples_of_pairs
from unrolled.data.sampler import Bucketed, Pooled, bucketed_batches, pooled_batches


def mixed(n: int, seed: int = 0) -> Examples:
    random = np.random.default_rng(seed)
    lengths = np.maximum(1, random.lognormal(3, 0.7, n).astype(int))
    return Examples({INPUT: ragged([np.full(m, 4) for m in lengths])}, {TARGET: np.arange(n)})


def test_an_epoch_sees_every_example_once_with_little_padding():
    examples = mixed(5000)
    sampler, again = (Pooled(examples, 32, BESIDE, seed=5) for _ in range(2))
    assert sampler.steps_per_epoch == 157
    seen, padded, real, widths = [], 0, 0, []
    for step in range(157):
        batch = sampler.batch(step)
        seen += batch.rows.tolist()
        padded, real = padded + batch.mask.numel(), real + int(batch.mask.sum())
        widths.append(batch.x.shape[1])
    assert sorted(seen) == list(range(5000))
    assert padded / real <= 1.1
    assert real == len(examples.values(INPUT)) and sampler.tokens_per_step == round(real / 157)
    assert widths[:50] != sorted(widths[:50])
    assert torch.equal(again.batch(200).rows, sampler.batch(200).rows)
    assert sampler.batch(157).rows.tolist() != sampler.batch(0).rows.tolist()
    assert sampler.epoch(200) == 1


def test_few_examples_and_none():
    examples = mixed(10)
    sampler = Pooled(examples, 32, BESIDE)
    assert sampler.batch_size == 10 and "the batch size is 10 instead of 32" in sampler.notes[0]
    with pytest.raises(DataError, match="no examples"):
        Pooled(examples.take(np.empty(0, np.int64)), 4, BESIDE)


def test_batches_for_figures_cover_everything_in_a_fixed_order():
    examples = mixed(100)
    batches = list(pooled_batches(examples, 16, BESIDE))
    assert sorted(row for batch in batches for row in batch.rows.tolist()) == list(range(100))
    for batch in batches:
        assert batch.y.tolist() == batch.rows.tolist()
    assert [b.rows.tolist() for b in pooled_batches(examples, 16, BESIDE)] == [b.rows.tolist() for b in batches]


# ---- sources and targets


@pytest.fixture
def pairs() -> Examples:
    random = np.random.default_rng(0)
    lengths = random.integers(1, 40, size=(300, 2))
    ids = [[random.integers(4, 20, n).astype(np.int32) for n in side] for side in lengths.T]
    return examples_of_pairs(*ids)


@pytest.mark.parametrize("tokens", [100, 700])
def test_an_epoch_has_every_pair_once_within_the_bound(pairs, tokens):
    sampler = Bucketed(pairs, tokens, seed=3)
    for epoch in range(2):
        batches = [sampler.batch(epoch * sampler.steps_per_epoch + i) for i in range(sampler.steps_per_epoch)]
        rows = torch.cat([batch.rows for batch in batches]).tolist()
        assert sorted(rows) == list(range(300))
        for batch in batches:
            assert batch.x.shape[0] * (batch.x.shape[1] + batch.source.shape[1]) <= max(tokens, 81)
    assert sampler.tokens_per_step == round(n_targets(pairs) / sampler.steps_per_epoch)


def test_the_order_is_a_function_of_seed_and_epoch(pairs):
    one, two, other = (
        Bucketed(pairs, 500, seed=3),
        Bucketed(pairs, 500, seed=3),
        Bucketed(pairs, 500, seed=4),
    )
    two.batch(5000)  # where a sampler has been does not matter
    steps = one.steps_per_epoch
    assert torch.equal(one.batch(steps + 2).source, two.batch(steps + 2).source)
    orders = [torch.cat([each.batch(i).rows for i in range(steps)]).tolist() for each in (one, other)]
    again = torch.cat([one.batch(i).rows for i in range(steps, 2 * steps)]).tolist()
    assert orders[0] != orders[1]
    assert orders[0] != again


def test_little_is_padding(pairs):
    sampler = Bucketed(pairs, 500)
    batches = [sampler.batch(i) for i in range(sampler.steps_per_epoch)]
    real = sum(int(batch.source_mask.sum() + (batch.y != EMPTY).sum()) for batch in batches)
    assert real / sum(batch.x.numel() + batch.source.numel() for batch in batches) > 0.75


def test_without_a_bound_the_rows_are_as_many_as_asked_for_on_average(pairs):
    sampler = Bucketed(pairs, None, batch_size=20)
    assert 10 <= 300 / sampler.steps_per_epoch <= 25


def test_evaluation_has_every_pair_once(pairs):
    rows = torch.cat([batch.rows for batch in bucketed_batches(pairs, 400)]).tolist()
    assert sorted(rows) == list(range(300))
    assert list(bucketed_batches(pairs.take(np.arange(0)), 400)) == []


def test_a_pair_that_is_too_large_stands_alone():
    pairs = examples_of_pairs([np.full(50, 5), np.full(2, 5)], [np.full(50, 5), np.full(2, 5)])
    assert sorted(len(batch.x) for batch in bucketed_batches(pairs, 20)) == [1, 1]


def test_no_pairs_to_learn_from():
    with pytest.raises(DataError, match="no pairs"):
        Bucketed(examples_of_pairs([], []), 100)
