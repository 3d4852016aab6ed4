"""Layers for models of your own. Every one is a torch module and follows one contract: `y, state = layer(x, state)`.

>>> import torch
>>> from unrolled import nn
>>> layer = nn.GRU(8, 16)
>>> x = torch.randn(4, 100, 8)  # [B, T, D]
>>> y, state = layer(x)  # a whole sequence, from the initial state
>>> first, state = layer(x[:, :60])
>>> rest, state = layer(x[:, 60:], state)  # the same in two chunks; T = 1 is a stream
>>> torch.allclose(torch.cat([first, rest], dim=1), y, atol=1e-6)
True

    the contract      Causal, Encoder, Conditional, State; functions of states are in `nn.state`
    composition       Serial, Residual, Each, SerialEncoder, AsEncoder, as_encoder
    recurrence        LSTM, GRU, BookGRU, Elman and both ways BiLSTM, BiGRU, BiElman; Recurrent, Stacked, Bidirectional,
                      BidirectionalStack of any Cell, run by a scan: loop, fused or deer
    cells             Cell, LSTMCell, GRUCell, BookGRUCell, ElmanCell, JordanCell, OutputFeedbackCell (and Forced)
    convolution       CausalConv, NormedConv
    attention         CausalSelfAttention, SelfAttention, CrossAttention of MultiHead, Versatile or Simple heads;
                      CausalBlock, EncoderBlock, DecoderBlock, FeedForward; tiled_attention
    positions         Placed and PlacedAll of Learned, OneHot, Joint, SinusoidAdded or SinusoidAppended; Rotary
    readouts          Last, Mean, Max, FirstLast, AttentionPooling, LearnedQuery, HopfieldPooling: one vector for a
                      sequence
    memories          ClassicalMemory, DenseMemory, ContinuousMemory: store, update, energy, recall; as_signs, as_bits;
                      layers Hopfield, Association and Lookup
    sources           EncoderDecoder, Appended, Guided: p(target | source)
    decoding          rollout, collect, beam_search, greedy, make_chooser; Decoding, Candidate
    exchange          from_torch, to_torch for torch.nn.RNN, LSTM and GRU

`unrolled.testing` checks that a layer, one of your own too, keeps the laws of the contract.
"""

from __future__ import annotations

from typing import ClassVar

from unrolled.core import state
from unrolled.core.causal import Causal, Conditional, Encoder
from unrolled.core.compose import AsEncoder, Each, Residual, Serial, SerialEncoder, as_encoder
from unrolled.core.state import State
from unrolled.decode.beam import beam_search
from unrolled.decode.choose import greedy, make_chooser
from unrolled.decode.config import Decoding
from unrolled.decode.rollout import Candidate, collect, rollout
from unrolled.layers.attention.attention import (
    CausalSelfAttention,
    CrossAttention,
    MultiHead,
    SelfAttention,
    Simple,
    Versatile,
)
from unrolled.layers.attention.blocks import CausalBlock, DecoderBlock, EncoderBlock
from unrolled.layers.attention.feed_forward import FeedForward
from unrolled.layers.attention.position import (
    Joint,
    Learned,
    OneHot,
    Placed,
    PlacedAll,
    Rotary,
    SinusoidAdded,
    SinusoidAppended,
)
from unrolled.layers.attention.tiled import tiled_attention
from unrolled.layers.conv.conv import CausalConv, NormedConv
from unrolled.layers.memory.association import Association, Hopfield, Lookup
from unrolled.layers.memory.classical import Classical as ClassicalMemory
from unrolled.layers.memory.continuous import Continuous as ContinuousMemory
from unrolled.layers.memory.dense import Dense as DenseMemory
from unrolled.layers.memory.memory import as_bits, as_signs
from unrolled.layers.parts.conditioning import Appended, Guided
from unrolled.layers.parts.encoder_decoder import EncoderDecoder
from unrolled.layers.readouts.attention import AttentionPooling
from unrolled.layers.readouts.first_last import FirstLast
from unrolled.layers.readouts.hopfield import HopfieldPooling
from unrolled.layers.readouts.last import Last
from unrolled.layers.readouts.max import Max
from unrolled.layers.readouts.mean import Mean
from unrolled.layers.readouts.query import LearnedQuery
from unrolled.layers.recurrent.cells import GRU as GRUCell
from unrolled.layers.recurrent.cells import LSTM as LSTMCell
from unrolled.layers.recurrent.cells import BookGRU as BookGRUCell
from unrolled.layers.recurrent.cells import Cell
from unrolled.layers.recurrent.cells import Elman as ElmanCell
from unrolled.layers.recurrent.cells import Jordan as JordanCell
from unrolled.layers.recurrent.cells import OutputFeedback as OutputFeedbackCell
from unrolled.layers.recurrent.deer import deer
from unrolled.layers.recurrent.family import (
    BidirectionalConfig,
    RecurrentConfig,
    bidirectional_layers,
    recurrent_layers,
)
from unrolled.layers.recurrent.fused import fused
from unrolled.layers.recurrent.recurrent import Bidirectional, BidirectionalStack, Forced, Recurrent, Stacked
from unrolled.layers.recurrent.scan import loop
from unrolled.layers.recurrent.torch_weights import from_torch, to_torch


class _OneWay(Stacked):
    """`n_layers` recurrent layers of `d_state` units: x [B, T, d_in] -> y [B, T, d_state], dropout between layers."""

    _cell: ClassVar[type[Cell]]

    def __init__(self, d_in: int, d_state: int, n_layers: int = 1, dropout: float = 0.0) -> None:
        config = RecurrentConfig.parse({"d_state": d_state, "n_layers": n_layers, "dropout": dropout})
        super().__init__(recurrent_layers(config, d_in, self._cell), dropout)


class LSTM(_OneWay):
    """Long short-term memory: see `LSTMCell` for the equations. The state is a tuple of [B, 2 d_state], one a layer.

    >>> import torch
    >>> y, (h,) = LSTM(3, 5)(torch.zeros(2, 7, 3))
    >>> tuple(y.shape), tuple(h.shape)
    ((2, 7, 5), (2, 10))
    """

    _cell = LSTMCell


class GRU(_OneWay):
    """Gated recurrent unit, the form of torch.nn.GRU: see `GRUCell`. The state is a tuple of [B, d_state]."""

    _cell = GRUCell


class BookGRU(_OneWay):
    """Gated recurrent unit whose reset gate acts before the matrix product: see `BookGRUCell`."""

    _cell = BookGRUCell


class Elman(_OneWay):
    """The simple recurrent network with tanh, torch.nn.RNN: see `ElmanCell`."""

    _cell = ElmanCell


class _BothWays(BidirectionalStack):
    """`n_layers` layers of `d_state` units in each direction: x [B, S, d_in], mask [B, S] -> y [B, S, 2 d_state], mask.

    Each layer sees both directions of the one below; dropout between layers.
    """

    _cell: ClassVar[type[Cell]]

    def __init__(self, d_in: int, d_state: int, n_layers: int = 1, dropout: float = 0.0) -> None:
        config = BidirectionalConfig.parse({"d_state": d_state, "n_layers": n_layers, "dropout": dropout})
        super().__init__(bidirectional_layers(config, d_in, self._cell), dropout)


class BiLSTM(_BothWays):
    """An LSTM in each direction: see `LSTMCell` and `Bidirectional`.

    >>> import torch
    >>> y, mask = BiLSTM(3, 5)(torch.zeros(2, 7, 3), torch.ones(2, 7, dtype=torch.bool))
    >>> tuple(y.shape)
    (2, 7, 10)
    """

    _cell = LSTMCell


class BiGRU(_BothWays):
    """A GRU in each direction: see `GRUCell` and `Bidirectional`."""

    _cell = GRUCell


class BiElman(_BothWays):
    """A simple recurrent network in each direction: see `ElmanCell` and `Bidirectional`."""

    _cell = ElmanCell


__all__ = [  # noqa: RUF022  # by kind, as above
    "LSTM", "GRU", "BookGRU", "Elman", "BiLSTM", "BiGRU", "BiElman",
    "Causal", "Encoder", "Conditional", "State", "state",
    "Serial", "Residual", "Each", "SerialEncoder", "AsEncoder", "as_encoder",
    "Recurrent", "Stacked", "Bidirectional", "BidirectionalStack", "Forced", "loop", "fused", "deer",
    "Cell", "LSTMCell", "GRUCell", "BookGRUCell", "ElmanCell", "JordanCell", "OutputFeedbackCell",
    "CausalConv", "NormedConv",
    "CausalSelfAttention", "SelfAttention", "CrossAttention", "MultiHead", "Versatile", "Simple",
    "CausalBlock", "EncoderBlock", "DecoderBlock", "FeedForward", "tiled_attention",
    "Placed", "PlacedAll", "Learned", "OneHot", "Joint", "SinusoidAdded", "SinusoidAppended", "Rotary",
    "Last", "Mean", "Max", "FirstLast", "AttentionPooling", "LearnedQuery", "HopfieldPooling",
    "ClassicalMemory", "DenseMemory", "ContinuousMemory", "Hopfield", "Association", "Lookup", "as_bits", "as_signs",
    "EncoderDecoder", "Appended", "Guided",
    "rollout", "collect", "beam_search", "greedy", "make_chooser", "Candidate", "Decoding",
    "from_torch", "to_torch",
]  # fmt: skip
