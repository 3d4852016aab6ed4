"""Models that read both ways: torch's own numbers through the model file, and what each position sees."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from unrolled.core import discover
from unrolled.core.spec import Sizes
from unrolled.layers.recurrent.torch_weights import to_torch

NAMES = ["birnn", "bilstm", "bigru"]
LENGTHS = torch.tensor([6, 1, 4])
MASK = torch.arange(6) < LENGTHS[:, None]


def body(name: str, **settings: Any) -> nn.Module:
    module = discover.models.load(name)
    torch.manual_seed(0)
    return module.make(module.Config(d_state=5, **settings), Sizes(3, 2)).double().eval()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_layers", [1, 2])
def test_a_model_is_torchs_module_on_packed_rows(name: str, n_layers: int) -> None:
    layer = body(name, n_layers=n_layers)
    theirs = to_torch(layer)
    assert theirs.bidirectional
    x = torch.randn(3, 6, 3, dtype=torch.float64)
    packed, _ = theirs(pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False))
    wanted, _ = pad_packed_sequence(packed, batch_first=True)
    y, mask = layer(x, MASK)
    torch.testing.assert_close(y, wanted)
    assert torch.equal(mask, MASK)
    assert y.shape[2] == layer.d_out == 10


@pytest.mark.parametrize("name", NAMES)
def test_each_half_sees_its_own_side(name: str) -> None:
    layer = body(name)
    x = torch.randn(3, 6, 3, dtype=torch.float64, requires_grad=True)
    y, _ = layer(x, MASK)
    ahead, back = y[0, 2].split(5)
    for half, seen in ((ahead, [1, 1, 1, 0, 0, 0]), (back, [0, 0, 1, 1, 1, 1])):
        (grad,) = torch.autograd.grad(half.sum(), x, retain_graph=True)
        assert grad[0].abs().sum(-1).gt(0).int().tolist() == seen


@pytest.mark.parametrize(("name", "gates", "biases"), [("birnn", 1, 1), ("bilstm", 4, 2), ("bigru", 3, 2)])
def test_each_direction_has_weights_of_its_own(name: str, gates: int, biases: int) -> None:
    """Superscripts f and r of eq. (7.14); the second layer reads both directions of the first."""
    m, counted = 5, sum(p.numel() for p in body(name, n_layers=2).parameters())
    assert counted == 2 * gates * (m * (3 + m + biases) + m * (2 * m + m + biases))


def test_settings_reach_the_cells() -> None:
    assert body("bilstm", d_proj=2).d_out == 4
    x = torch.randn(3, 6, 3, dtype=torch.float64)
    assert not torch.allclose(body("bigru")(x, MASK)[0], body("bigru", reset="before")(x, MASK)[0])
    assert body("birnn", activation="relu")(x, MASK)[0].min() >= 0
    module = discover.models.load("bigru")
    assert module.Config().resized(7).d_state == 7


def test_dropout_between_layers_in_training_only() -> None:
    layer = body("bigru", n_layers=2, dropout=0.5)
    x = torch.randn(3, 6, 3, dtype=torch.float64)
    assert torch.equal(layer(x, MASK)[0], layer(x, MASK)[0])
    layer.train()
    assert not torch.equal(layer(x, MASK)[0], layer(x, MASK)[0])
