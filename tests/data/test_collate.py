"""From examples to batches: padding on the right, masks, targets beside the input or a step further on."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from unrolled.core.batch import SOURCE, TARGET
from unrolled.core.tokens import EMPTY, START, STOP
from unrolled.data.collate import BESIDE, FRAMES, NEXT, Form, collate, collate_spans, n_targets, pad
from unrolled.data.examples import ENDS, INPUT, ROWS, Examples, Ragged, ragged

RANDOM = np.random.default_rng(0)
LENGTHS = [3, 1, 5, 2]
IDS = [RANDOM.integers(4, 20, n) for n in LENGTHS]
SERIES = [RANDOM.standard_normal((n, 3)).astype(np.float32) for n in LENGTHS]
ALL = np.arange(4)

CASES = {
    "class of ids": (IDS, np.array([1, 0, 1, 2]), torch.int64, (4,), torch.int64),
    "set of ids": (IDS, np.eye(4, dtype=np.float32), torch.int64, (4, 4), torch.float32),
    "numbers of series": (SERIES, np.ones((4, 2), np.float32), torch.float32, (4, 2), torch.float32),
    "tags of ids": (IDS, [ids % 3 for ids in IDS], torch.int64, (4, 5), torch.int64),
    "clean series": (SERIES, [s[:, :2] * 2 for s in SERIES], torch.float32, (4, 5, 2), torch.float32),
    "ids with letters": (
        [np.stack([ids, ids + 1], 1) for ids in IDS], [ids % 3 for ids in IDS], torch.int64, (4, 5), torch.int64,
    ),
    "half precision": ([s.astype(np.float16) for s in SERIES], np.arange(4), torch.float32, (4,), torch.int64),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_inputs_with_targets_beside_them(case):
    inputs, targets, x_type, y_shape, y_type = CASES[case]
    aligned = isinstance(targets, list)
    fields = {INPUT: ragged(inputs)} | ({TARGET: ragged(targets)} if aligned else {})
    examples = Examples(fields, {ROWS: np.array([7, 5, 3, 1])} | ({} if aligned else {TARGET: targets}))
    batch = collate(examples, ALL, BESIDE)
    assert batch.x.dtype == x_type and batch.x.shape == (4, 5, *inputs[0].shape[1:])
    assert batch.y.dtype == y_type and tuple(batch.y.shape) == y_shape
    assert batch.mask.sum(1).tolist() == LENGTHS
    for i, n in enumerate(LENGTHS):
        np.testing.assert_array_equal(batch.x[i, :n], inputs[i])
        assert not batch.x[i, n:].any()
        np.testing.assert_array_equal(batch.y[i, :n] if aligned else batch.y[i], targets[i])
        if aligned:
            assert (batch.y[i, n:] == (-1 if y_type == torch.int64 else 0)).all()
    assert batch.rows.tolist() == [0, 1, 2, 3]


def test_inputs_alone_have_no_target():
    batch = collate(Examples({INPUT: ragged(IDS)}), np.array([2, 1]), BESIDE)
    assert batch.targets == {} and batch.x.shape == (2, 5)
    with pytest.raises(KeyError):
        _ = batch.y


def test_frames_with_the_text_that_they_say():
    examples = Examples({SOURCE: ragged(SERIES), TARGET: ragged(IDS)})
    batch = collate(examples, np.array([1, 3]), FRAMES)
    assert batch.x.shape == (2, 2, 3) and batch.mask.tolist() == [[True, False], [True, True]]
    assert batch.y.tolist() == [[IDS[1][0], EMPTY], IDS[3].tolist()]


def pairs(*targets: list[int], **columns) -> Examples:
    sources = [np.array([7, 8, 9]), np.array([5])][: len(targets)]
    return Examples({SOURCE: ragged(sources), TARGET: ragged([np.array(each) for each in targets])}, columns)


def test_a_source_and_what_is_written_for_it():
    batch = collate(pairs([6], [4, 5]), np.array([1, 0]), NEXT)
    assert batch.source.tolist() == [[5, EMPTY, EMPTY], [7, 8, 9]]
    assert batch.source_mask.tolist() == [[True, False, False], [True, True, True]]
    assert batch.x.tolist() == [[START, 4, 5], [START, 6, EMPTY]]
    assert batch.y.tolist() == [[4, 5, STOP], [6, STOP, EMPTY]]
    assert batch.rows.tolist() == [1, 0] and batch.mask is None


def test_sources_of_numbers():
    sources = ragged([np.ones((2, 3), np.float16), np.ones((1, 3), np.float16)])
    examples = Examples({SOURCE: sources, TARGET: ragged([np.array([5]), np.array([6])])})
    batch = collate(examples, np.arange(2), NEXT)
    assert batch.source.shape == (2, 2, 3)
    assert batch.source.dtype == torch.float32
    assert batch.source[1, 1].tolist() == [0, 0, 0]


def test_what_was_cut_has_no_end():
    examples = pairs([6], [6], **{ENDS: np.array([True, False])})
    assert collate(examples, np.arange(2), NEXT).y.tolist() == [[6, STOP], [6, EMPTY]]
    assert n_targets(examples) == 3 == collate(examples, np.arange(2), NEXT).n_targets


@pytest.mark.parametrize("ahead", [1, 2, 4])
@pytest.mark.parametrize("cut", [False, True])
def test_how_much_is_to_be_predicted(ahead: int, cut: bool):
    columns = {ENDS: np.array([False, True, False, True])} if cut else {}
    for sequences in (IDS, SERIES):
        examples = Examples({TARGET: ragged(sequences)}, columns)
        assert n_targets(examples, ahead) == collate(examples, ALL, Form(TARGET, ahead)).n_targets


def test_a_class_starts_each_example():
    batch = collate(Examples({TARGET: ragged(IDS)}, {SOURCE: np.array([5, 6, 7, 8], np.int32)}), np.array([3, 0]), NEXT)
    assert batch.source.tolist() == [8, 5] and batch.source.dtype == torch.int64
    assert batch.source_mask is None


def test_bags_of_sequences():
    bags = Ragged(np.arange(1, 8), (np.array([0, 2, 2, 3]), np.array([0, 3, 4, 7])))  # [[1 2 3] [4]] [] [[5 6 7]]
    batch = collate(Examples({INPUT: bags}, {TARGET: np.array([1, 0, 1])}), np.array([2, 0, 1]), BESIDE)
    assert batch.x.tolist() == [[[5, 6, 7], [0, 0, 0]], [[1, 2, 3], [4, 0, 0]], [[0, 0, 0], [0, 0, 0]]]
    assert batch.instances.tolist() == [[True, False], [True, True], [False, False]]
    assert batch.mask.sum().item() == 7 and batch.y.tolist() == [1, 1, 0]
    vectors = Ragged(np.arange(14.0).reshape(7, 2), bags.offsets)
    assert pad(vectors, np.arange(3))[0].shape == (3, 2, 3, 2)


def test_spans_of_a_stream():
    stream = Examples({TARGET: ragged([np.arange(10, 30)])}, is_stream=True)
    first = np.array([0, 8, 12])
    batch = collate_spans(stream, first, np.array([4, 11, 12]), np.array([0, 10, 0]), 4, ahead=2)
    assert batch.x.tolist() == [[10, 11, 12, 13], [18, 19, 20, EMPTY], [EMPTY] * 4]
    assert batch.y.tolist() == [[12, 13, 14, 15], [EMPTY, EMPTY, 22, EMPTY], [EMPTY] * 4]
