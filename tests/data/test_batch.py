"""Batches: the shift, the padding, every token once, and each batch a pure function of the step."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.core.batch import SOURCE, TARGET
from unrolled.core.errors import DataError
from unrolled.core.tokens import EMPTY, START, STOP
from unrolled.data.collate import NEXT, Form
from unrolled.data.config import DataConfig
from unrolled.data.examples import ENDS, Examples, ragged
from unrolled.data.prepare import prepare
from unrolled.data.sampler import POSITIONS, Pooled, StreamRows, Windows, pooled_batches, stream_batches


def stream(n: int) -> Examples:
    """Tokens 10, 11, 12, ..: each says its own position."""
    return Examples({TARGET: ragged([np.arange(n) + 10])}, is_stream=True)


def predicted(batches, ahead: int) -> Counter[int]:
    """How often each token is a target; checks that it stands `ahead` after its input."""
    count: Counter[int] = Counter()
    for batch in batches:
        counted = batch.y != EMPTY
        assert (batch.y[counted] == batch.x[counted] + ahead).all()
        count.update(batch.y[counted].tolist())
    return count


def contexts(batches) -> dict[int, int]:
    """For each target, how many tokens the model has seen before it; follows the carried state."""
    seen: dict[int, int] = {}
    history: list[list[int]] = []
    for batch in batches:
        rows = batch.x.tolist()
        history = [[] for _ in rows] if batch.fresh else history
        for row, (x, y) in enumerate(zip(rows, batch.y.tolist())):
            for token, target in zip(x, y):
                if token != EMPTY:
                    assert not history[row] or token == history[row][-1] + 1  # contiguous
                    history[row].append(token)
                if target != EMPTY:
                    seen[target] = len(history[row])
    return seen


@given(
    n=st.integers(2, 80), batch_size=st.integers(1, 9), length=st.integers(1, 20),
    ahead=st.integers(1, 3), context=st.integers(0, 12), carried=st.booleans(),
)  # fmt: skip
@settings(max_examples=250, deadline=None)
def test_evaluation_predicts_every_token_exactly_once(n, batch_size, length, ahead, context, carried):
    if n <= ahead:
        with pytest.raises(DataError, match="nothing to predict"):
            stream_batches(stream(n), batch_size, length, ahead, context, carried)
        return
    batches = list(stream_batches(stream(n), batch_size, length, ahead, context, carried))
    assert predicted(batches, ahead) == Counter(range(10 + ahead, 10 + n))
    assert len({batch.x.shape[1] for batch in batches}) == 1
    assert all(len(batch.x) <= batch_size for batch in batches)
    seen = contexts(batches)
    reachable = min(context, batches[0].x.shape[1] - 1) if not carried else context
    for target, length_seen in seen.items():
        available = target - 10 - ahead + 1
        assert length_seen >= min(reachable + 1, available)
    if carried:
        assert [batch.fresh for batch in batches] == [i == 0 for i in range(len(batches))]
    else:
        assert all(batch.fresh for batch in batches)


def test_evaluation_by_default_warms_rows_up():
    seen = contexts(stream_batches(stream(5000), batch_size=8, length=100))
    assert min(seen[10 + position] for position in range(300, 5000)) >= 257
    seen = contexts(stream_batches(stream(5000), batch_size=8, length=100, carried=False))
    assert min(seen[10 + position] for position in range(100, 5000)) >= 51


@given(
    n=st.integers(1, 200), batch_size=st.integers(1, 6), length=st.integers(1, 12), extra=st.integers(0, 9),
    ahead=st.integers(1, 3), seed=st.integers(0, 3),
)  # fmt: skip
@settings(max_examples=120, deadline=None)
def test_rows_of_a_stream_predict_each_token_at_most_once_and_carry_on(n, batch_size, length, extra, ahead, seed):
    back = length + extra
    if n - ahead < back:
        with pytest.raises(DataError, match="too few for one row"):
            StreamRows(stream(n), batch_size, length, back, ahead, seed)
        return
    rows = StreamRows(stream(n), batch_size, length, back, ahead, seed)
    assert (rows.batch_size < batch_size) == bool(rows.notes)
    for epoch in range(2):
        steps = range(epoch * rows.steps_per_epoch, (epoch + 1) * rows.steps_per_epoch)
        batches = [rows.batch(step) for step in steps]
        assert [rows.epoch(step) for step in steps] == [epoch] * len(steps)
        count = predicted(batches, ahead)
        assert set(count.values()) == {1}
        assert len(count) == rows.batch_size * ((rows.steps_per_epoch - 1) * length + back)
        assert all(10 + ahead <= token < 10 + n for token in count)
        for i, batch in enumerate(batches):
            assert batch.x.shape == (rows.batch_size, back)
            assert batch.fresh == (i == 0)
            assert batch.keep == (None if back == length else length)
            if i > 0:  # the state after the first `keep` positions is the one this batch starts from
                assert (batch.x[:, 0] == batches[i - 1].x[:, length - 1] + 1).all()
                assert batch.n_targets == rows.tokens_per_step


def test_most_of_a_stream_is_used_and_epochs_differ():
    rows = StreamRows(stream(10_000), batch_size=8, length=50)
    used = rows.batch_size * rows.length * rows.steps_per_epoch
    assert used >= 10_000 - 2 * 8 * 50
    first = [rows.batch(epoch * rows.steps_per_epoch).x[0, 0].item() for epoch in range(8)]
    assert len(set(first)) > 4


@given(
    n=st.integers(1, 200), batch_size=st.integers(1, 6), length=st.integers(1, 12),
    ahead=st.integers(1, 3), seed=st.integers(0, 3),
)  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_windows_stay_inside_and_do_not_repeat_within_an_epoch(n, batch_size, length, ahead, seed):
    if n - ahead < length:
        with pytest.raises(DataError, match="too few for one row"):
            Windows(stream(n), batch_size, length, ahead, seed)
        return
    windows = Windows(stream(n), batch_size, length, ahead, seed)
    batches = [windows.batch(step) for step in range(windows.steps_per_epoch)]
    count = predicted(batches, ahead)
    assert set(count.values()) == {1}
    assert all(10 + ahead <= token < 10 + n for token in count)
    assert all(batch.fresh and batch.n_targets == windows.tokens_per_step for batch in batches)


def test_windows_use_most_of_the_section_in_an_order_that_changes():
    windows = Windows(stream(10_000), batch_size=8, length=50)
    assert windows.steps_per_epoch * windows.tokens_per_step > 9_000
    first = [windows.batch(epoch * windows.steps_per_epoch).x[:, 0].tolist() for epoch in range(2)]
    assert sorted(first[0]) != first[0]
    assert first[0] != first[1]


def examples(lengths, classes=None) -> Examples:
    tokens = [np.arange(n) + 10 + 100 * i for i, n in enumerate(lengths)]
    return Examples({TARGET: ragged(tokens)}, {} if classes is None else {SOURCE: np.array(classes)})


def test_examples_are_framed_and_padded_on_the_right():
    batch = next(iter(pooled_batches(examples([2, 1, 3], [5, 6, 7]), 3, NEXT)))
    assert batch.rows.tolist() == [1, 0, 2]
    assert batch.x.tolist() == [[START, 110, 0, 0], [START, 10, 11, 0], [START, 210, 211, 212]]
    assert batch.y.tolist() == [[110, STOP, 0, 0], [10, 11, STOP, 0], [210, 211, 212, STOP]]
    assert batch.source.tolist() == [6, 5, 7]
    assert batch.n_targets == 9
    assert batch.fresh


def test_examples_further_ahead_and_cut_ones():
    batch = next(iter(pooled_batches(examples([2, 3]), 2, Form(TARGET, 2))))
    assert batch.x.tolist() == [[START, 10, 0], [START, 110, 111]]
    assert batch.y.tolist() == [[11, STOP, 0], [111, 112, STOP]]
    section = Examples({TARGET: ragged([np.array([10, 11]), np.array([20])])}, {ENDS: np.array([False, True])})
    batch = next(iter(pooled_batches(section, 2, NEXT)))
    assert batch.y.tolist() == [[20, STOP, 0], [10, 11, EMPTY]]
    batch = next(iter(pooled_batches(examples([1, 1]), 2, Form(TARGET, 5))))
    assert batch.x.shape == (2, 1)
    assert batch.n_targets == 0


@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=60), batch_size=st.integers(1, 8), seed=st.integers(0, 3)
)
@settings(max_examples=100, deadline=None)
def test_every_example_comes_once_per_epoch(lengths, batch_size, seed):
    section = examples(lengths, list(range(len(lengths))))
    sampler = Pooled(section, batch_size, NEXT, seed=seed)
    for epoch in range(2):
        steps = range(epoch * sampler.steps_per_epoch, (epoch + 1) * sampler.steps_per_epoch)
        batches = [sampler.batch(step) for step in steps]
        rows = [row for batch in batches for row in batch.rows.tolist()]
        assert sorted(rows) == list(range(len(lengths)))
        assert sum(batch.n_targets for batch in batches) == sum(lengths) + len(lengths)
        for batch in batches:
            assert (batch.source == batch.rows).all()
    ordered = [row for batch in pooled_batches(section, batch_size, NEXT) for row in batch.rows.tolist()]
    assert sorted(ordered) == list(range(len(lengths)))


def test_long_examples_are_evaluated_few_at_a_time():
    section = examples([POSITIONS // 3] * 5 + [2 * POSITIONS, 5], [0] * 7)
    batches = list(pooled_batches(section, 64, NEXT))
    assert sorted(row for batch in batches for row in batch.rows.tolist()) == list(range(7))
    assert [len(batch.rows) for batch in batches] == [3, 3, 1]
    assert all(batch.x.numel() <= POSITIONS + 3 for batch in batches if len(batch.rows) > 1)


def test_padding_is_small_on_real_text_and_the_order_random():
    section = prepare("builtin:unicode-names", DataConfig()).sections["train"]
    sampler = Pooled(section, 32, NEXT, seed=1)
    batches = [sampler.batch(step) for step in range(sampler.steps_per_epoch)]
    cells, targets = sum(b.y.numel() for b in batches), sum(b.n_targets for b in batches)
    assert targets == len(section.values(TARGET)) + section.n_examples
    assert cells / targets <= 1.1
    widths = np.array([b.x.shape[1] for b in batches])
    assert abs(np.corrcoef(widths[:-1], widths[1:])[0, 1]) < 0.25  # short and long batches mixed
    assert abs(sampler.tokens_per_step - targets / len(batches)) < 1


@pytest.mark.parametrize("make", [
    lambda seed: StreamRows(stream(3000), 4, 20, 30, seed=seed),
    lambda seed: Windows(stream(3000), 4, 20, seed=seed),
    lambda seed: Pooled(examples([3, 5, 2, 7] * 30), 8, NEXT, seed=seed),
])  # fmt: skip
def test_a_batch_is_a_pure_function_of_the_step(make):
    one, other = make(5), make(5)
    steps = [0, 7, 3 * one.steps_per_epoch + 1, 7, one.steps_per_epoch, 0]
    inorder = {step: one.batch(step) for step in range(3 * one.steps_per_epoch + 2)}
    for step in steps:  # another object, in another order: as after a restart
        batch = other.batch(step)
        assert torch.equal(batch.x, inorder[step].x)
        assert torch.equal(batch.y, inorder[step].y)
        assert (batch.fresh, batch.keep) == (inorder[step].fresh, inorder[step].keep)
    assert any(not torch.equal(make(6).batch(step).x, inorder[step].x) for step in steps)


def test_moving_a_batch_keeps_everything():
    batch = Pooled(examples([3, 5], [1, 0]), 2, NEXT).batch(0)
    moved = batch.to("cpu")
    assert torch.equal(moved.source, batch.source)
    assert torch.equal(moved.rows, batch.rows)
    assert moved.to("meta").x.device.type == "meta"


def test_too_little_data_is_explained():
    with pytest.raises(DataError, match=r"has 5 tokens, too few for one row of 10; give more"):
        StreamRows(stream(5), 2, 10)
    rows = StreamRows(stream(100), 64, 10)
    assert rows.batch_size == 9
    assert "the batch size is 9 instead of 64" in rows.notes[0]
    assert "there are no more examples" in Pooled(examples([1, 2]), 64, NEXT).notes[0]
    with pytest.raises(DataError, match="no examples"):
        Pooled(examples([]), 4, NEXT)
