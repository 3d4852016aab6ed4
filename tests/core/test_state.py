"""State trees: everything that decoding, training and serving do to a state, for states of any form."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unrolled.core import state
from unrolled.core.state import Fixed


class Pair(NamedTuple):
    h: torch.Tensor
    c: torch.Tensor


def leaf(rows: int, width: int = 2) -> torch.Tensor:
    return torch.arange(rows * width, dtype=torch.float32).view(rows, width)


def example(rows: int = 3):
    return {
        "pair": Pair(leaf(rows), 10 + leaf(rows, 1)),
        "deep": ((), (torch.arange(rows), None)),
        "fixed": Fixed({"source": 100 + leaf(rows)}),
    }


TREES = st.recursive(
    st.sampled_from(["tensor", "empty", "none"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        inner.map(lambda part: ("fixed", part)),
    ),
    max_leaves=6,
)


def built(plan, rows: int, inside: bool = False):
    """A tree of the drawn form with distinct numbers in it; Fixed does not nest."""
    if plan == "tensor":
        return torch.randn(rows, 2)
    if plan in ("empty", "none"):
        return () if plan == "empty" else None
    if isinstance(plan, dict):
        return {key: built(part, rows, inside) for key, part in plan.items()}
    if plan and plan[0] == "fixed":
        return built(plan[1], rows, inside) if inside else Fixed(built(plan[1], rows, True))
    return tuple(built(part, rows, inside) for part in plan)


def test_leaves_come_in_a_fixed_order_and_include_fixed():
    found = [tensor.flatten()[0].item() for tensor in state.leaves(example())]
    assert found == [0, 10, 0, 100]
    assert list(state.leaves(None)) == []


def test_take_reorders_every_leaf_and_keeps_the_form():
    rows = torch.tensor([2, 0, 0, 1])
    taken = state.take(example(), rows)
    assert type(taken["pair"]) is Pair
    assert isinstance(taken["fixed"], Fixed)
    assert taken["deep"][0] == ()
    assert taken["deep"][1][1] is None
    for new, old in zip(state.leaves(taken), state.leaves(example()), strict=True):
        assert torch.equal(new, old[rows])


@given(TREES, st.lists(st.integers(0, 2), min_size=1, max_size=5), st.lists(st.integers(0, 4), max_size=5))
def test_take_twice_is_take_once(plan, first, second):
    tree = built(plan, 3)
    second = [index % len(first) for index in second]
    once = state.take(tree, torch.tensor(first)[torch.tensor(second, dtype=torch.long)])
    twice = state.take(state.take(tree, torch.tensor(first)), torch.tensor(second, dtype=torch.long))
    for a, b in zip(state.leaves(once), state.leaves(twice), strict=True):
        assert torch.equal(a, b)


@given(TREES, st.lists(st.booleans(), min_size=3, max_size=3))
def test_where_picks_whole_rows(plan, active):
    new, old = built(plan, 3), built(plan, 3)
    mixed = state.where(torch.tensor(active), new, old)
    for m, a, b in zip(_moving(mixed), _moving(new), _moving(old), strict=True):
        for row, is_new in enumerate(active):
            assert torch.equal(m[row], (a if is_new else b)[row])


def _moving(tree):
    """The leaves outside Fixed."""
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, dict | tuple):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from _moving(part)


def test_where_broadcasts_over_leaves_of_any_shape():
    new, old = (torch.ones(2, 3, 4, 5), torch.ones(2)), (torch.zeros(2, 3, 4, 5), torch.zeros(2))
    mixed = state.where(torch.tensor([True, False]), new, old)
    assert mixed[0][0].min() == 1
    assert mixed[0][1].max() == 0
    assert mixed[1].tolist() == [1, 0]


def test_where_keeps_integers_integers():
    counters = state.where(torch.tensor([True, False]), torch.tensor([5, 6]), torch.tensor([1, 2]))
    assert counters.tolist() == [5, 2]
    assert counters.dtype == torch.int64


def test_clone_copies_all_but_fixed():
    original = example()
    copy = state.clone(original)
    for tensor in _moving(copy):
        tensor.zero_()
    assert [tensor.flatten()[1].item() for tensor in _moving(original) if tensor.numel() > 3] == [1]
    assert original["pair"].c.min() == 10
    assert copy["fixed"] is original["fixed"]


def test_regroup_moves_all_but_fixed():
    rows = torch.tensor([1, 0, 2])
    moved = state.regroup(example(), rows)
    assert torch.equal(moved["pair"].h, example()["pair"].h[rows])
    assert torch.equal(moved["fixed"].tree["source"], example()["fixed"].tree["source"])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_repeat_puts_copies_of_a_row_side_by_side(n):
    spread = state.repeat(example(2), n)
    assert spread["deep"][1][0].tolist() == [0] * n + [1] * n
    for new, old in zip(state.leaves(spread), state.leaves(example(2)), strict=True):
        assert torch.equal(new, state.take(old, torch.arange(2 * n) // n))


def test_regroup_among_repeated_rows_is_take():
    spread = state.repeat(example(2), 2)
    rows = torch.tensor([1, 0, 3, 3])
    for a, b in zip(state.leaves(state.regroup(spread, rows)), state.leaves(state.take(spread, rows)), strict=True):
        assert torch.equal(a, b)


def test_detach_cuts_history_everywhere():
    w = torch.ones(2, 2, requires_grad=True)
    cut = state.detach({"a": 2 * w, "fixed": Fixed((3 * w,))})
    assert not any(tensor.requires_grad for tensor in state.leaves(cut))
    assert cut["fixed"].tree[0].max() == 3


def test_take_and_where_let_gradients_through():
    w = torch.ones(3, 2, requires_grad=True)
    tree = state.where(torch.tensor([True, False, True]), (2 * w,), (5 * w,))
    state.take(tree, torch.tensor([0, 0, 1]))[0].sum().backward()
    assert w.grad.tolist() == [[4, 4], [5, 5], [0, 0]]


def test_nbytes_counts_every_leaf():
    assert state.nbytes(example(3)) == 3 * 2 * 4 + 3 * 4 + 3 * 8 + 3 * 2 * 4
    assert state.nbytes(None) == 0
    assert state.nbytes(()) == 0


def test_to_moves_fixed_too():
    moved = state.to(example(), "meta")
    assert {tensor.device.type for tensor in state.leaves(moved)} == {"meta"}


@pytest.mark.parametrize("foreign", [3, 0.5, "text", [torch.zeros(2)], {1, 2}])
@pytest.mark.parametrize("place", [lambda x: x, lambda x: (torch.zeros(2), x), lambda x: Fixed({"a": x})])
def test_foreign_leaves_are_explained(foreign, place):
    tree = place(foreign)
    for action in (
        lambda: list(state.leaves(tree)),
        lambda: state.take(tree, torch.tensor([0])),
        lambda: state.detach(tree),
    ):
        with pytest.raises(TypeError, match=f"found {type(foreign).__name__}.*tensors \\[B\\]"):
            action()


def test_fixed_cannot_be_reassigned():
    with pytest.raises(AttributeError):
        Fixed(()).tree = 3


def test_trees_of_unlike_form_do_not_mix():
    with pytest.raises(ValueError, match="zip"):
        state.where(torch.tensor([True]), (torch.zeros(1), torch.zeros(1)), (torch.zeros(1),))
