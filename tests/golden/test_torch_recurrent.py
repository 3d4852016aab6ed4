"""The recurrent family against torch.nn: the same weights give the same outputs, states and gradients, both ways."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from unrolled import nn as nn_layers
from unrolled.core.errors import UsageError
from unrolled.layers.recurrent.cells import GRU, LSTM, BookGRU, Elman
from unrolled.layers.recurrent.fused import fused
from unrolled.layers.recurrent.recurrent import Bidirectional, BidirectionalStack, Recurrent, Stacked
from unrolled.layers.recurrent.scan import Scan, loop
from unrolled.layers.recurrent.torch_weights import from_torch, to_torch

KINDS: dict[str, Any] = {
    "rnn-tanh": lambda **k: nn.RNN(3, 5, **k),
    "rnn-relu": lambda **k: nn.RNN(3, 5, nonlinearity="relu", **k),
    "lstm": lambda **k: nn.LSTM(3, 5, **k),
    "lstm-projected": lambda **k: nn.LSTM(3, 5, proj_size=2, **k),
    "gru": lambda **k: nn.GRU(3, 5, **k),
}


@pytest.fixture(params=sorted(KINDS))
def kind(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(11)
    return KINDS[request.param]


def torch_state(module: nn.RNNBase, state: tuple[Tensor, ...]) -> Any:
    """Our tuple of [B, N] as torch's h [L, B, N], or (h, c)."""
    if not isinstance(module, nn.LSTM):
        return torch.stack(state)
    width = module.proj_size or module.hidden_size
    return torch.stack([s[:, :width] for s in state]), torch.stack([s[:, width:] for s in state])


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "plain"])
@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("scan", [loop, fused], ids=["loop", "fused"])
def test_stacked(kind: Any, scan: Scan, num_layers: int, bias: bool) -> None:
    module = kind(num_layers=num_layers, bias=bias, batch_first=True).double()
    layer = from_torch(module)
    assert isinstance(layer, Stacked)
    for part in layer:
        part.scan = scan
    x = torch.randn(2, 7, 3).double()
    start = tuple(torch.randn(2, part.cell.state_size).double() for part in layer)
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, state = layer(ours, start)
    expected, expected_state = module(theirs, torch_state(module, start))
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(torch_state(module, state), expected_state)
    weights = torch.arange(y.numel()).view_as(y).sin()
    for value, given in ((y, ours), (expected, theirs)):
        (value * weights).sum().backward()
        assert given.grad is not None
    torch.testing.assert_close(ours.grad, theirs.grad)
    for k, part in enumerate(layer):
        for name, weight in part.cell.named_parameters():
            twin = "bias_ih" if name == "bias" else name  # the gradients of torch's two biases are equal
            torch.testing.assert_close(weight.grad, getattr(module, f"{twin}_l{k}").grad)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "plain"])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_bidirectional_with_unequal_lengths(kind: Any, num_layers: int, bias: bool) -> None:
    module = kind(num_layers=num_layers, bias=bias, bidirectional=True, batch_first=True).double()
    layer = from_torch(module)
    assert isinstance(layer, BidirectionalStack)
    lengths = torch.tensor([7, 2, 5])
    mask = torch.arange(7) < lengths[:, None]
    x = torch.randn(3, 7, 3).double()
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, _ = layer(ours, mask)
    packed = pack_padded_sequence(theirs, lengths, batch_first=True, enforce_sorted=False)
    out, state = module(packed)
    expected = pad_packed_sequence(out, batch_first=True)[0]
    torch.testing.assert_close(y, expected)
    h = state[0] if isinstance(module, nn.LSTM) else state  # [L * 2, B, N]
    P = y.shape[-1] // 2
    torch.testing.assert_close(y[torch.arange(3), lengths - 1, :P], h[-2])  # the last forward state
    torch.testing.assert_close(y[:, 0, P:], h[-1])  # the last backward state stands at the beginning
    for value in (y, expected):
        (value * torch.arange(y.numel()).view_as(y).sin()).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "plain"])
@pytest.mark.parametrize("bidirectional", [True, False], ids=["both", "one"])
def test_there_and_back(kind: Any, bidirectional: bool, bias: bool) -> None:
    module = kind(num_layers=2, bias=bias, dropout=0.25, bidirectional=bidirectional).double()
    layer = from_torch(module)
    again = to_torch(layer)
    assert type(again) is type(module)
    assert again.batch_first
    assert again.dropout == 0.25
    assert again.state_dict().keys() == module.state_dict().keys()
    x = torch.randn(2, 4, 3).double()
    module.eval()
    again.eval()
    torch.testing.assert_close(again(x)[0], module(x.transpose(0, 1))[0].transpose(0, 1))
    if isinstance(module, nn.RNN) and bias:
        assert (again.bias_hh_l0 == 0).all()
        torch.testing.assert_close(again.bias_ih_l0, module.bias_ih_l0 + module.bias_hh_l0)
    else:
        for name, value in module.state_dict().items():
            assert torch.equal(again.state_dict()[name], value)


def test_the_weights_are_copies() -> None:
    module = nn.GRU(3, 4)
    layer = from_torch(module)
    with torch.no_grad():
        module.weight_hh_l0.zero_()
    assert next(iter(layer)).cell.weight_hh.abs().min() > 0


def test_single_layers_have_twins_too() -> None:
    x = torch.randn(2, 4, 3)
    one = Recurrent(LSTM(3, 4))
    torch.testing.assert_close(to_torch(one)(x)[0], one(x)[0])
    pair = Bidirectional(Recurrent(GRU(3, 4)), Recurrent(GRU(3, 4)))
    torch.testing.assert_close(to_torch(pair)(x)[0], pair(x, torch.ones(2, 4, dtype=torch.bool))[0])


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (Recurrent(BookGRU(3, 4)), "Elman, LSTM and GRU cells, not of BookGRU"),
        (Recurrent(Elman(3, 4, "sigmoid")), "tanh and relu"),
        (Recurrent(GRU(3, 4), initial="learned"), "learned initial state"),
        (Stacked([Recurrent(GRU(3, 4)), Recurrent(GRU(4, 5))]), "weight_hh_l1|bias_hh_l1"),
        (Stacked([Recurrent(GRU(3, 4)), Recurrent(LSTM(4, 4))]), "equal kind and width"),
        (Stacked([Recurrent(Elman(3, 4)), Recurrent(Elman(4, 4, "relu"))]), "one activation"),
        (Bidirectional(nn_layers.GRU(3, 4, 2), nn_layers.GRU(3, 4, 2)), "use BidirectionalStack"),
        (nn_layers.CausalConv(3, 4, kernel=2), "recurrent layers, not CausalConv"),
    ],
)
def test_what_torch_cannot_hold_is_refused(layer: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        to_torch(layer)


class OwnGRU(nn.GRU):
    pass


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Linear(3, 4), "torch.nn.RNN, LSTM and GRU, not Linear"),
        (OwnGRU(3, 4), "not OwnGRU"),
        (nn.utils.parametrizations.weight_norm(nn.GRU(3, 4), "weight_hh_l0"), "not ParametrizedGRU"),
        (prune.l1_unstructured(nn.GRU(3, 4), "weight_hh_l0", 0.5), "'weight_hh_l0_orig': make its pruning permanent"),
    ],
)
def test_modules_that_cannot_be_converted_are_refused(module: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        from_torch(module)


def test_the_mode_is_kept() -> None:
    module = nn.LSTM(3, 4, num_layers=2, dropout=0.9, batch_first=True).eval()
    layer, x = from_torch(module), torch.randn(2, 5, 3)
    torch.testing.assert_close(layer(x)[0], module(x)[0])
    assert not to_torch(layer).training
    assert to_torch(layer.train()).training
