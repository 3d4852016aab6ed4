"""Encoders that predict together obey the laws of an encoder, and their outputs are mixed as an emission mixes them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.core.compose import as_encoder
from unrolled.emissions.categorical import Categorical
from unrolled.layers.parts.assembled import Reader
from unrolled.layers.parts.ensemble import Together
from unrolled.layers.readouts.mean import Mean
from unrolled.testing import check_encoder


def member(seed: int) -> Reader:
    torch.manual_seed(seed)
    return Reader(nn.Linear(4, 5), as_encoder(nn.Tanh()), Mean(5), nn.Linear(5, 3))


def test_it_is_an_encoder():
    assert "padding" in check_encoder(Together([member(0), member(1)], Categorical(3).mix), d_in=4)


def test_outputs_are_mixed_with_equal_weights():
    members = [member(seed) for seed in range(3)]
    x, mask = torch.randn(6, 7, 4), torch.arange(7) < torch.tensor([7, 5, 1, 3, 7, 2])[:, None]
    ys = torch.stack([each(x, mask)[0] for each in members])  # [K, B, 1, C]
    y, shown = Together(members)(x, mask)
    torch.testing.assert_close(y, ys.mean(0))
    y, _ = Together(members, Categorical(3).mix)(x, mask)
    torch.testing.assert_close(y.softmax(-1), ys.softmax(-1).mean(0))
    assert shown.shape == (6, 1)
    assert Together(members).serial_steps(64) == pytest.approx(Together(members[:1]).serial_steps(64))
