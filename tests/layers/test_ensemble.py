"""Encoders that answer together obey the laws of an encoder, and their probabilities are a geometric mean."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.core.compose import as_encoder
from unrolled.layers.parts.assembled import Reader
from unrolled.layers.parts.ensemble import Together
from unrolled.layers.readouts.mean import Mean
from unrolled.testing import check_encoder


def member(seed: int) -> Reader:
    torch.manual_seed(seed)
    return Reader(nn.Linear(4, 5), as_encoder(nn.Tanh()), Mean(5), nn.Linear(5, 3))


def test_it_is_an_encoder():
    assert "padding" in check_encoder(Together([member(0), member(1)]), d_in=4)


def test_probabilities_are_a_geometric_mean():
    members = [member(seed) for seed in range(3)]
    x, mask = torch.randn(6, 7, 4), torch.arange(7) < torch.tensor([7, 5, 1, 3, 7, 2])[:, None]
    p = torch.stack([each(x, mask)[0].softmax(-1) for each in members])  # [K, B, 1, C]
    wanted = p.log().mean(0).exp()
    y, shown = Together(members)(x, mask)
    torch.testing.assert_close(y.softmax(-1), wanted / wanted.sum(-1, keepdim=True))
    assert shown.shape == (6, 1)
    assert Together(members).serial_steps(64) == pytest.approx(Together(members[:1]).serial_steps(64))
