"""Counts of a token between its neighbours, against counting by hand."""

from __future__ import annotations

import pytest
import torch

from unrolled.core.spec import Sizes
from unrolled.models.masked_ngram import MODEL, Config

TEXTS = torch.tensor([[4, 5, 6], [4, 7, 6], [4, 5, 6], [5, 6, 4]])
MASK = torch.ones(4, 3, dtype=torch.bool)
V = 9


def solved(context: str):
    model = MODEL.make(Config(context=context), Sizes(V, V + 2))
    model.solve([(TEXTS, MASK, TEXTS)])
    return model


def at(model, left: int, right: int) -> torch.Tensor:
    y = model(torch.tensor([[left, 8, right]]), torch.ones(1, 3, dtype=torch.bool))[0][0, 1, :V]
    assert y.exp().sum().item() == pytest.approx(1.0, abs=1e-5)
    return y.exp()


def by_hand() -> dict[str, torch.Tensor]:
    n = torch.bincount(TEXTS.flatten(), minlength=V).float()
    p = (n + 1) / (12 + V)
    left = (torch.tensor([0, 0, 0, 0, 0, 2.0, 0, 1, 0]) + 2 * p) / (3 + 2)  # 4 stands before 5, 7, 5
    right = (torch.tensor([0, 0, 0, 0, 0, 3.0, 0, 1, 0]) + 2 * p) / (4 + 2)  # 6 stands behind 5, 7, 5, 5
    q = left * right / p
    both = (torch.tensor([0, 0, 0, 0, 0, 2.0, 0, 1, 0]) + 2 * q / q.sum()) / (3 + 2)
    return {"none": p, "left": left, "right": right, "both": both}


@pytest.mark.parametrize("context", ["none", "left", "right", "both"])
def test_probabilities_are_those_of_the_formula(context: str) -> None:
    assert torch.allclose(at(solved(context), 4, 6), by_hand()[context], atol=1e-6)


def test_neighbours_that_were_never_counted_say_nothing() -> None:
    assert torch.allclose(at(solved("both"), 8, 8), by_hand()["none"], atol=1e-6)
    assert torch.allclose(at(solved("left"), 8, 6), by_hand()["none"], atol=1e-6)


def test_tables_are_saved_and_damaged_ones_refused() -> None:
    one, other = solved("both"), MODEL.make(Config(), Sizes(V, V + 2))
    other.load_state_dict(one.state_dict())
    assert torch.equal(at(one, 4, 6), at(other, 4, 6))
    broken = one.state_dict() | {"both_codes": one.both_codes.flip(0)}
    with pytest.raises(RuntimeError, match="the table of both contexts is damaged"):
        MODEL.make(Config(), Sizes(V, V + 2)).load_state_dict(broken)
