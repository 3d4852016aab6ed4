"""A batch holds what any task needs: bags, what is known beside x, ids side by side, missing values."""

from __future__ import annotations

import pytest
import torch

from unrolled.core.batch import SOURCE, TARGET, Batch
from unrolled.core.tokens import EMPTY

LENGTHS = torch.tensor([[2, 3, 0], [1, 0, 0]])  # of the instances of two bags
BAG = Batch(torch.randn(2, 3, 3, 4), torch.arange(3) < LENGTHS[..., None], {TARGET: torch.tensor([1, 0])})
KNOWN = Batch(
    torch.randn(2, 5, 1),
    targets={TARGET: torch.randn(2, 5, 1)},
    sources={"future": torch.randn(2, 9, 3), "place": torch.tensor([4, 7])},
    source_masks={"future": torch.arange(9) < torch.tensor([[9], [6]])},
    scale=torch.tensor([[2.0], [3.0]]),
)
SEGMENTS = Batch(
    torch.stack([torch.arange(10).view(2, 5), torch.zeros(2, 5, dtype=torch.long)], 2),
    targets={"masked": torch.tensor([[0, 5, 0, 0, 0], [0, 0, 0, 8, 9]]), "follows": torch.tensor([1, 0])},
)
MISSING = Batch(
    torch.randn(2, 5, 2),
    torch.arange(5) < torch.tensor([[5], [3]]),
    {TARGET: torch.randn(2, 5, 2)},
    {TARGET: torch.rand(2, 5, 2) < 0.5},
    rows=torch.tensor([8, 3]),
    places=torch.tensor([0, 64]),
)
ALL = {"bags": BAG, "covariates": KNOWN, "segments": SEGMENTS, "missing values": MISSING}


def parts(batch: Batch) -> dict[str, torch.Tensor]:
    found = {}
    for name, value in vars(batch).items():
        if isinstance(value, torch.Tensor):
            found[name] = value
        elif isinstance(value, dict):
            found |= {f"{name}.{key}": tensor for key, tensor in value.items()}
    return found


@pytest.mark.parametrize("kind", ALL)
def test_every_tensor_moves_and_is_cut_with_the_rows(kind: str) -> None:
    batch = ALL[kind]
    before, moved, first = parts(batch), parts(batch.to("meta")), parts(batch.first(1))
    assert before.keys() == moved.keys() == first.keys()
    assert all(tensor.device.type == "meta" for tensor in moved.values())
    for name, tensor in before.items():
        assert torch.equal(first[name], tensor[:1])
        assert len(tensor) == 2  # as it was
    assert (batch.first(1).fresh, batch.first(1).keep) == (True, None)


def test_a_bag_has_the_instances_that_have_a_step() -> None:
    assert BAG.instances.tolist() == [[True, True, False], [True, False, False]]
    assert BAG.first(1).instances.tolist() == [[True, True, False]]


def test_the_first_source_is_the_main_one() -> None:
    assert KNOWN.source is KNOWN.sources["future"]
    assert KNOWN.source_mask is KNOWN.source_masks["future"]
    assert Batch(KNOWN.x, sources={"place": KNOWN.sources["place"]}).source_mask is None
    assert (BAG.source, BAG.source_mask) == (None, None)


def test_of_ids_what_is_empty_is_not_predicted() -> None:
    assert SEGMENTS.y is SEGMENTS.targets["masked"]
    assert torch.equal(SEGMENTS.real, SEGMENTS.y != EMPTY)
    assert SEGMENTS.n_targets == 3


def test_missing_numbers_are_no_targets() -> None:
    assert MISSING.y_mask is MISSING.target_masks[TARGET]
    assert MISSING.n_targets == int(MISSING.target_masks[TARGET].sum())
    without = Batch(MISSING.x, MISSING.mask, MISSING.targets)
    assert without.y_mask is MISSING.mask and without.n_targets == 8


def test_a_carried_batch_stays_one() -> None:
    batch = Batch(torch.zeros(2, 4), sources={SOURCE: torch.tensor([1, 2])}, fresh=False, keep=3)
    assert (batch.to("cpu").fresh, batch.first(1).keep) == (False, 3)
