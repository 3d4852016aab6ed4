"""Trees of tensors go into a table and JSON and come back the same."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.core.errors import DataError
from unrolled.core.state import Fixed
from unrolled.runs.storage.formats import json_text, parse_json, parse_tensors, tensor_file
from unrolled.runs.storage.state_json import flatten, unflatten


class Pair(NamedTuple):
    h: Any
    c: Any


class Other(NamedTuple):
    taps: Any
    phase: Any


def through_files(tree: Any, template: Any = None) -> Any:
    tensors, structure = flatten(tree, "carried")
    assert all(name.startswith("carried") for name in tensors)
    _, pieces = tensor_file(tensors, "file")
    loaded = parse_tensors(b"".join(bytes(memoryview(piece)) for piece in pieces), "file")
    return unflatten(loaded, parse_json(json_text(structure, "file").encode(), "file"), template)


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
    if isinstance(a, Fixed):
        return same(a.tree, b.tree)
    if isinstance(a, dict):
        return list(a) == list(b) and all(type(j) is type(k) for j, k in zip(a, b)) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b))


tensors = st.builds(
    lambda shape, dtype: torch.arange(math.prod(shape)).reshape(shape).to(dtype),
    st.lists(st.integers(0, 3), max_size=3),
    st.sampled_from([torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16]),
)
leaves = st.one_of(tensors, st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
keys = st.one_of(st.text("ab/#", max_size=3), st.integers(-3, 3))
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=3),
        st.builds(Pair, inner, inner),
        st.builds(Fixed, inner),
    ),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(trees)
def test_any_tree_comes_back_under_its_own_template(tree: Any):
    assert same(through_files(tree, template=tree), tree)


def test_named_tuples_need_a_template():
    tree = (Pair(torch.ones(2), None), {"memory": Fixed((torch.zeros(1),))})
    with pytest.raises(DataError, match="the fields h, c where the model has nothing; it belongs to another model"):
        through_files(tree)
    assert same(through_files(tree, template=(Pair(torch.zeros(5), None), None)), tree)


def test_a_layer_that_has_not_begun_fits_any_template():
    assert through_files((None, torch.ones(1)), (Pair(torch.ones(1), None), torch.ones(1)))[0] is None


def test_an_optimiser_comes_back_exactly():
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 2)
    optimiser = torch.optim.AdamW(layer.parameters(), lr=0.1)
    layer(torch.randn(4, 3)).square().sum().backward()
    optimiser.step()
    assert same(through_files(optimiser.state_dict()), optimiser.state_dict())


def test_names_can_be_read_and_never_meet():
    tree = {"a": {"b": torch.zeros(1)}, "a/b": torch.ones(1), "a/b#2": torch.ones(2)}
    table, structure = flatten(tree)
    assert next(iter(table)) == "a/b"
    assert len(table) == 3
    assert same(unflatten(table, json.loads(json.dumps(structure))), tree)


def test_a_shared_tensor_is_shared_again():
    h = torch.ones(3)
    first, second = through_files((h, h))
    assert first.data_ptr() == second.data_ptr()


@pytest.mark.parametrize(
    ("tree", "template"),
    [
        ((torch.ones(1), torch.ones(1)), (torch.ones(1),)),
        ({"h": torch.ones(1)}, {"c": torch.ones(1)}),
        (Pair(torch.ones(1), None), (torch.ones(1), None)),
        (torch.ones(1), (torch.ones(1),)),
        (Fixed(torch.ones(1)), torch.ones(1)),
        (Pair(torch.ones(1), None), Other(torch.ones(1), None)),
        (3, torch.ones(1)),
    ],
)
def test_a_state_of_another_model_is_refused(tree: Any, template: Any):
    with pytest.raises(DataError, match="it belongs to another model"):
        through_files(tree, template)


@pytest.mark.parametrize(
    "structure",
    [[1], {"tensor": "x", "tuple": []}, {}, {"class": "os.system"}, {"dict": [[1, 2, 3]]}, {"dict": {"a": 1}},
     {"tuple": 3}, {"float": "1e9"}, {"tensor": 3}, {"dict": [[[1], 2]]}, {"tensor": "missing"}],
)  # fmt: skip
def test_a_damaged_structure_is_refused(structure: Any):
    with pytest.raises(DataError, match=r"damaged|missing"):
        unflatten({}, structure)


def test_what_cannot_be_saved_is_named():
    with pytest.raises(TypeError, match="0/x: a object"):
        flatten(({"x": object()},))
    with pytest.raises(TypeError, match="neither a string nor an integer"):
        flatten({(1, 2): 3})
