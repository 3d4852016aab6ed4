"""Word dropout: whole positions, in training only, at the given rate."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.core.compose import Serial, SerialEncoder
from unrolled.core.errors import UsageError
from unrolled.layers.parts.dropout import WordDropout, kept
from unrolled.testing import check_causal, check_encoder


def test_whole_positions_are_dropped_and_the_others_stay_as_they_are() -> None:
    torch.manual_seed(0)
    x = torch.rand(50, 40, 3) + 1
    y = WordDropout(0.3)(x)
    dropped = (y == 0).all(-1)
    assert torch.equal(y[~dropped], x[~dropped])
    assert dropped.float().mean().item() == pytest.approx(0.3, abs=0.04)
    assert not torch.equal(dropped[0], dropped[1])


def test_nothing_is_dropped_outside_training() -> None:
    x = torch.randn(2, 5, 3)
    assert torch.equal(WordDropout(0.9).eval()(x), x)
    assert torch.equal(WordDropout(0.0)(x), x)


def test_it_joins_causal_layers_and_encoders() -> None:
    check_causal(Serial(WordDropout(0.5), nn.Linear(3, 2)), d_in=3)
    check_encoder(SerialEncoder(WordDropout(0.5), nn.Linear(3, 2)), d_in=3)
    model = Serial(nn.Embedding(9, 4), WordDropout(0.5))
    y, _ = model(torch.randint(9, (20, 30)))
    assert 0.3 < (y == 0).all(-1).float().mean().item() < 0.7


def test_a_row_never_loses_all_it_has() -> None:
    torch.manual_seed(0)
    mask = torch.arange(6) < torch.tensor([6, 2, 1, 0])[:, None].repeat(200, 1)
    remaining = kept(mask, 0.9)
    assert not (remaining & ~mask).any()
    assert torch.equal(remaining.any(1), mask.any(1))
    assert remaining[mask.sum(1) == 6].float().mean() < 0.9
    long = torch.ones(100, 100, dtype=torch.bool)
    assert kept(long, 0.25).float().mean().item() == pytest.approx(0.75, abs=0.02)


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5])
def test_impossible_rates(p: float) -> None:
    with pytest.raises(UsageError, match="of word dropout"):
        WordDropout(p)
