"""Batches of pairs: shifted, masked, by tokens, and a function of the step alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unrolled.core.errors import DataError
from unrolled.core.tokens import EMPTY, START, STOP
from unrolled.data.pairs_batch import PairExamples, pad_pairs, pair_batches, section_of_pairs


@pytest.fixture
def section():
    random = np.random.default_rng(0)
    lengths = random.integers(1, 40, size=(300, 2))
    ids = [[random.integers(4, 20, n).astype(np.int32) for n in side] for side in lengths.T]
    return section_of_pairs(*ids)


def test_padding_and_shift():
    section = section_of_pairs([np.array([7, 8, 9]), np.array([5])], [np.array([6]), np.array([4, 5])])
    batch = pad_pairs(section, np.array([1, 0]))
    assert batch.source.tolist() == [[5, EMPTY, EMPTY], [7, 8, 9]]
    assert batch.source_mask.tolist() == [[True, False, False], [True, True, True]]
    assert batch.x.tolist() == [[START, 4, 5], [START, 6, EMPTY]]
    assert batch.y.tolist() == [[4, 5, STOP], [6, STOP, EMPTY]]
    assert batch.rows.tolist() == [1, 0]


def test_a_cut_target_has_no_end():
    section = section_of_pairs([np.array([5])] * 2, [np.array([6])] * 2, ends=[True, False])
    assert pad_pairs(section, np.arange(2)).y.tolist() == [[6, STOP], [6, EMPTY]]
    assert section.n_targets == 3


def test_sources_of_numbers():
    section = section_of_pairs(
        [np.ones((2, 3), np.float32), np.ones((1, 3), np.float32)], [np.array([5]), np.array([6])]
    )
    batch = pad_pairs(section, np.arange(2))
    assert batch.source.shape == (2, 2, 3)
    assert batch.source.dtype == torch.float32
    assert batch.source[1, 1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("tokens", [100, 700])
def test_an_epoch_has_every_pair_once_within_the_bound(section, tokens):
    sampler = PairExamples(section, tokens, seed=3)
    for epoch in range(2):
        batches = [sampler.batch(epoch * sampler.steps_per_epoch + i) for i in range(sampler.steps_per_epoch)]
        rows = torch.cat([batch.rows for batch in batches]).tolist()
        assert sorted(rows) == list(range(300))
        for batch in batches:
            assert batch.x.shape[0] * (batch.x.shape[1] + batch.source.shape[1]) <= max(tokens, 81)
    assert sampler.tokens_per_step == round(section.n_targets / sampler.steps_per_epoch)


def test_the_order_is_a_function_of_seed_and_epoch(section):
    one, two, other = (
        PairExamples(section, 500, seed=3),
        PairExamples(section, 500, seed=3),
        PairExamples(section, 500, seed=4),
    )
    two.batch(5000)  # where a sampler has been does not matter
    steps = one.steps_per_epoch
    assert torch.equal(one.batch(steps + 2).source, two.batch(steps + 2).source)
    orders = [torch.cat([each.batch(i).rows for i in range(steps)]).tolist() for each in (one, other)]
    again = torch.cat([one.batch(i).rows for i in range(steps, 2 * steps)]).tolist()
    assert orders[0] != orders[1]
    assert orders[0] != again


def test_little_is_padding(section):
    sampler = PairExamples(section, 500)
    batches = [sampler.batch(i) for i in range(sampler.steps_per_epoch)]
    real = sum(int(batch.source_mask.sum() + (batch.y != EMPTY).sum()) for batch in batches)
    assert real / sum(batch.x.numel() + batch.source.numel() for batch in batches) > 0.75


def test_without_a_bound_the_rows_are_as_many_as_asked_for_on_average(section):
    sampler = PairExamples(section, None, batch_size=20)
    assert 10 <= 300 / sampler.steps_per_epoch <= 25


def test_evaluation_has_every_pair_once(section):
    rows = torch.cat([batch.rows for batch in pair_batches(section, 400)]).tolist()
    assert sorted(rows) == list(range(300))
    assert list(pair_batches(section.take(np.arange(0)), 400)) == []


def test_a_pair_that_is_too_large_stands_alone():
    section = section_of_pairs([np.full(50, 5), np.full(2, 5)], [np.full(50, 5), np.full(2, 5)])
    assert sorted(len(batch.x) for batch in pair_batches(section, 20)) == [1, 1]


def test_shares_are_spread_and_keep_what_belongs_to_them():
    section = section_of_pairs(
        [np.array([i]) for i in range(10)], [np.array([i, i]) for i in range(10)],
        texts=([str(i) for i in range(10)], [str(-i) for i in range(10)]), kinds=["a", "b"] * 5,
    )  # fmt: skip
    some = section.spread(3)
    assert some.source.tolist() == [0, 3, 6]
    assert some.texts == (["0", "3", "6"], ["0", "-3", "-6"])
    assert some.kinds == ["a", "b", "a"]
    assert section.share(0.5).target.tolist() == [0, 0, 2, 2, 4, 4, 6, 6, 8, 8]
    assert section.targets().n_examples == 10


def test_nothing_to_learn_from():
    with pytest.raises(DataError, match="no pairs"):
        PairExamples(section_of_pairs([], []), 100)
