"""Batches of labelled examples: padding, masks, answers, and a pure function of the step."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unrolled.core.errors import DataError
from unrolled.data.labelled_batch import LabelledBatches, labelled_batches, pad_labelled, section_of

RANDOM = np.random.default_rng(0)
LENGTHS = [3, 1, 5, 2]
IDS = [RANDOM.integers(4, 20, n) for n in LENGTHS]
SERIES = [RANDOM.standard_normal((n, 3)).astype(np.float32) for n in LENGTHS]

CASES = {
    "class of ids": (IDS, [np.int64(n) for n in (1, 0, 1, 2)], False, torch.int64, (4,), torch.int64),
    "set of ids": (IDS, [np.eye(4, dtype=np.float32)[n] for n in range(4)], False, torch.int64, (4, 4), torch.float32),
    "numbers of series": (SERIES, [np.ones(2, np.float32)] * 4, False, torch.float32, (4, 2), torch.float32),
    "tags of ids": (IDS, [ids % 3 for ids in IDS], True, torch.int64, (4, 5), torch.int64),
    "clean series": (SERIES, [s[:, :2] * 2 for s in SERIES], True, torch.float32, (4, 5, 2), torch.float32),
    "ids with letters": (
        [np.stack([ids, ids + 1], 1) for ids in IDS], [ids % 3 for ids in IDS], True, torch.int64, (4, 5), torch.int64,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_padding_and_answers(case):
    inputs, answers, aligned, x_type, y_shape, y_type = CASES[case]
    section = section_of(inputs, answers, aligned, range(4))
    batch = pad_labelled(section, np.arange(4))
    assert batch.x.dtype == x_type and batch.x.shape == (4, 5, *inputs[0].shape[1:])
    assert batch.y.dtype == y_type and tuple(batch.y.shape) == y_shape
    assert batch.mask.sum(1).tolist() == LENGTHS
    for i, n in enumerate(LENGTHS):
        np.testing.assert_array_equal(batch.x[i, :n], inputs[i])
        assert not batch.x[i, n:].any()
        np.testing.assert_array_equal(batch.y[i, :n] if aligned else batch.y[i], answers[i])
        if aligned:
            assert (batch.y[i, n:] == (-1 if y_type == torch.int64 else 0)).all()
    assert batch.to("cpu").rows.tolist() == [0, 1, 2, 3]
    some = section.take(np.array([2, 0]))
    np.testing.assert_array_equal(some.input(0), inputs[2])
    np.testing.assert_array_equal(some.answer(1), answers[0])
    assert some.rows.tolist() == [2, 0]


def mixed(n: int, seed: int = 0):
    random = np.random.default_rng(seed)
    lengths = np.maximum(1, random.lognormal(3, 0.7, n).astype(int))
    return section_of([np.full(m, 4) for m in lengths], list(np.arange(n)), False, range(n))


def test_an_epoch_sees_every_example_once_with_little_padding():
    section = mixed(5000)
    sampler, again = LabelledBatches(section, 32, seed=5), LabelledBatches(section, 32, seed=5)
    assert sampler.steps_per_epoch == 157
    seen, padded, real, widths = [], 0, 0, []
    for step in range(157):
        batch = sampler.batch(step)
        seen += batch.rows.tolist()
        padded, real = padded + batch.mask.numel(), real + int(batch.mask.sum())
        widths.append(batch.x.shape[1])
    assert sorted(seen) == list(range(5000))
    assert padded / real <= 1.1
    assert real == section.n_steps and sampler.tokens_per_step == round(real / 157)
    assert widths[:50] != sorted(widths[:50])
    assert torch.equal(again.batch(200).rows, sampler.batch(200).rows)
    assert sampler.batch(157).rows.tolist() != sampler.batch(0).rows.tolist()
    assert sampler.epoch(200) == 1


def test_small_sections_and_parts_of_them():
    section = mixed(10)
    sampler = LabelledBatches(section, 32)
    assert sampler.batch_size == 10 and "the batch size is 10 instead of 32" in sampler.notes[0]
    assert section.share(0.5).n_examples == 5
    empty = section.take(np.empty(0, np.int64))
    with pytest.raises(DataError, match="no examples"):
        LabelledBatches(empty, 4)


def test_batches_for_figures_cover_everything_in_a_fixed_order():
    section = mixed(100)
    batches = list(labelled_batches(section, 16))
    assert sorted(row for batch in batches for row in batch.rows.tolist()) == list(range(100))
    for batch in batches:
        assert batch.y.tolist() == batch.rows.tolist()
    assert [b.rows.tolist() for b in labelled_batches(section, 16)] == [b.rows.tolist() for b in batches]
