"""Weights to and from torch.nn.RNN, LSTM and GRU: load a torch module, get the same numbers, and back.

Names and gate order agree. The one difference: `Elman` has one bias where torch.nn.RNN has two, which only ever act
as a sum; they are summed on the way in, and written as (b, 0) on the way out.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from unrolled.core.errors import UsageError, listed
from unrolled.layers.recurrent.cells import ACTIVATIONS, GRU, LSTM, Cell, Elman
from unrolled.layers.recurrent.recurrent import Bidirectional, BidirectionalStack, Recurrent, Stacked

Weights = dict[str, Tensor]
NAME = re.compile(r"(weight|bias)_(ih|hh|hr)_l\d+(_reverse)?")


class Twin(ABC):
    """A cell of this library and the module of torch.nn that computes the same."""

    torch_class: type[nn.RNNBase]

    @abstractmethod
    def cell(self, rnn: nn.RNNBase, d_in: int) -> Cell:
        """Our cell of the sizes of one layer."""

    @abstractmethod
    def module(self, cell: Cell, num_layers: int, dropout: float, bidirectional: bool) -> nn.RNNBase:
        """torch's module whose layers have the cell's sizes."""

    def read(self, weights: Weights) -> Weights:
        return weights

    def write(self, weights: Weights) -> Weights:
        return weights


class ElmanTwin(Twin):
    torch_class = nn.RNN

    def cell(self, rnn: nn.RNNBase, d_in: int) -> Cell:
        return Elman(d_in, rnn.hidden_size, str(rnn.nonlinearity), rnn.bias)

    def module(self, cell: Cell, num_layers: int, dropout: float, bidirectional: bool) -> nn.RNNBase:
        assert isinstance(cell, Elman)
        names = [name for name in ("tanh", "relu") if ACTIVATIONS[name] is cell.activation]
        if not names:
            raise UsageError("torch.nn.RNN supports only the activations tanh and relu")
        return nn.RNN(
            cell.input_size, cell.state_size, num_layers, names[0], cell.bias is not None, True, dropout, bidirectional
        )

    def read(self, weights: Weights) -> Weights:
        if "bias_ih" not in weights:
            return weights
        return {
            "weight_ih": weights["weight_ih"],
            "weight_hh": weights["weight_hh"],
            "bias": weights["bias_ih"] + weights["bias_hh"],
        }

    def write(self, weights: Weights) -> Weights:
        if "bias" not in weights:
            return weights
        b = weights["bias"]
        return {
            "weight_ih": weights["weight_ih"],
            "weight_hh": weights["weight_hh"],
            "bias_ih": b,
            "bias_hh": torch.zeros_like(b),
        }


class LSTMTwin(Twin):
    torch_class = nn.LSTM

    def cell(self, rnn: nn.RNNBase, d_in: int) -> Cell:
        return LSTM(d_in, rnn.hidden_size, rnn.proj_size or None, rnn.bias)

    def module(self, cell: Cell, num_layers: int, dropout: float, bidirectional: bool) -> nn.RNNBase:
        assert isinstance(cell, LSTM)
        projected = 0 if cell.weight_hr is None else cell.output_size
        d_state = cell.state_size - cell.output_size
        return nn.LSTM(
            cell.input_size, d_state, num_layers, cell.bias_ih is not None, True, dropout, bidirectional, projected
        )


class GRUTwin(Twin):
    torch_class = nn.GRU

    def cell(self, rnn: nn.RNNBase, d_in: int) -> Cell:
        return GRU(d_in, rnn.hidden_size, rnn.bias)

    def module(self, cell: Cell, num_layers: int, dropout: float, bidirectional: bool) -> nn.RNNBase:
        assert isinstance(cell, GRU)
        return nn.GRU(
            cell.input_size, cell.state_size, num_layers, cell.bias_ih is not None, True, dropout, bidirectional
        )


TWINS: dict[type[Cell], Twin] = {Elman: ElmanTwin(), LSTM: LSTMTwin(), GRU: GRUTwin()}


def from_torch(module: nn.RNNBase) -> Stacked | BidirectionalStack:
    """The layer with the weights (copied) of a torch.nn.RNN, LSTM or GRU; a bidirectional module becomes an Encoder.

    Input is [B, T, D] whatever `batch_first` is. A subclass, a parametrised and a pruned module are a
    UsageError.

    >>> layer = from_torch(nn.GRU(3, 4, num_layers=2))
    >>> [type(recurrent.cell).__name__ for recurrent in layer]
    ['GRU', 'GRU']
    """
    twin = next((twin for twin in TWINS.values() if type(module) is twin.torch_class), None)
    if twin is None:
        raise UsageError(f"from_torch converts torch.nn.RNN, LSTM and GRU, not {type(module).__name__}")
    state = module.state_dict()
    if odd := next((name for name in state if not NAME.fullmatch(name)), None):
        raise UsageError(f"this {type(module).__name__} has a weight '{odd}': make its pruning permanent first")
    sides = ("", "_reverse") if module.bidirectional else ("",)
    layers = [[_read(twin, module, state, f"_l{k}{side}") for side in sides] for k in range(module.num_layers)]
    made: Stacked | BidirectionalStack
    if module.bidirectional:
        made = BidirectionalStack([Bidirectional(*pair) for pair in layers], module.dropout)
    else:
        made = Stacked([layer for (layer,) in layers], module.dropout)
    return made.train(module.training)


def _read(twin: Twin, module: nn.RNNBase, state: Weights, end: str) -> Recurrent:
    """The layer whose weights are called `weight_ih{end}` and so on."""
    weights = {name.removesuffix(end): value for name, value in state.items() if name.endswith(end)}
    cell = twin.cell(module, weights["weight_ih"].shape[1]).to(weights["weight_ih"])
    cell.load_state_dict(twin.read(weights))
    return Recurrent(cell)


def to_torch(layer: Recurrent | Stacked | Bidirectional | BidirectionalStack) -> nn.RNNBase:
    """The torch.nn module (batch_first) with the weights (copied) of a layer; torch users load its `state_dict()`.

    A layer that torch.nn cannot express (another cell, a learned initial state, unequal layers) is a UsageError.
    """
    layers = _layers(layer)
    recurrent = [one for pair in layers for one in pair]
    first = recurrent[0].cell
    twin = TWINS.get(type(first))
    if twin is None:
        known = listed(kind.__name__ for kind in TWINS)
        raise UsageError(f"to_torch converts layers of {known} cells, not of {type(first).__name__}")
    if any(one.h_0 is not None for one in recurrent):
        raise UsageError("torch.nn has no learned initial state: make a layer without one, and pass h_0 to the module")
    if len({one.cell.activation for one in recurrent if isinstance(one.cell, Elman)}) > 1:
        raise UsageError("torch.nn.RNN has one activation for all its layers")
    dropout = layer.dropout.p if isinstance(layer, Stacked | BidirectionalStack) and len(layers) > 1 else 0.0
    module = twin.module(first, len(layers), dropout, bidirectional=len(layers[0]) == 2).to(next(first.parameters()))
    state: Weights = {}
    for k, pair in enumerate(layers):
        for one, side in zip(pair, ("", "_reverse")):
            weights = twin.write(dict(one.cell.state_dict()))
            state |= {f"{name}_l{k}{side}": value for name, value in weights.items()}
    _fit(module, state)
    module.load_state_dict(state)
    return module.train(layer.training)


def _layers(layer: nn.Module) -> list[list[Recurrent]]:
    """The recurrent layers from the bottom up, each with its directions."""
    if isinstance(layer, Recurrent):
        return [[layer]]
    if isinstance(layer, Bidirectional):
        ahead, back = _layers(layer.ahead), _layers(layer.back)
        if len(ahead) != 1 or len(back) != 1:
            raise UsageError("in torch.nn each layer reads both directions of the one below: use BidirectionalStack")
        return [[*ahead[0], *back[0]]]
    if isinstance(layer, Stacked | BidirectionalStack):
        return [one for part in layer.layers for one in _layers(part)]
    raise UsageError(f"to_torch converts recurrent layers, not {type(layer).__name__}")


def _fit(module: nn.Module, state: Weights) -> None:
    """torch.nn makes all layers of one kind and width: refuse what it cannot hold, by the first name that differs."""
    shapes = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    for name in sorted(shapes.keys() | state.keys()):
        if name not in shapes or name not in state or shapes[name] != tuple(state[name].shape):
            raise UsageError(f"torch.nn needs layers of equal kind and width; they differ in '{name}'")
