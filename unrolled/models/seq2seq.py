"""Sequence to sequence: recurrent encoder-decoder, with or without attention.

    v^(1) .. v^(S) = encoder(source),  z* = v at the last real step
    start        h^(0) = tanh(W_z z* + b_z),  h^(t) = f(h^(t-1), x^(t))                     Fig. 7.9 (a)
    every-step   the same with [x^(t); z*] going in and [h^(t); z*] coming out              Fig. 7.9 (b)
    attention    s^(t) = f(s^(t-1), [x^(t); u^(t)]),  u^(t) = sum_tau alpha_tau^(t) v^(tau)  Fig. 7.10, eq. (7.22)
                 alpha^(t) = softmax over tau of s(s^(t-1), v^(tau)), eq. (7.20)

x^(t) is the embedded previous token. Sutskever et al. (2014), who reverse the source; Cho et al. (2014); Bahdanau et
al. (2015), whose encoder reads both ways (eq. 7.14).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Self

from pydantic import Field

from unrolled.core import config
from unrolled.core.causal import Causal, Encoder
from unrolled.core.compose import SerialEncoder
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.parts.decoders import attention_decoder, fixed_context_decoder
from unrolled.layers.parts.encoder_decoder import Backwards, Halves
from unrolled.layers.recurrent.cells import GRU, LSTM, Cell, Elman
from unrolled.layers.recurrent.family import BidirectionalConfig, RecurrentConfig, bidirectional_stack, stack

CELLS: dict[str, Callable[[int, int], Cell]] = {"gru": GRU, "lstm": LSTM, "elman": Elman}


class Config(config.Config):
    cell: Literal["gru", "lstm", "elman"] = "gru"
    """The recurrent cell of both halves."""
    context: Literal["attention", "every-step", "start"] = "attention"
    """How the source reaches the decoder: by attention at each step; as one vector at each step and at the output; as
    one vector that initialises the state."""
    score: Literal["additive", "general", "dot", "scaled-dot", "concatenation"] = "additive"
    """Attention score between a state and a position of the source."""
    output: Literal["deep", "state"] = "deep"
    """With attention: the output is tanh(W [s; u; x]), as in Bahdanau et al., or the state alone, eq. (7.22)."""
    d_state: int = Field(256, ge=1)
    """Units per layer (in the encoder, per layer and direction)."""
    n_layers: int = Field(1, ge=1)
    """Layers of each half, eq. (7.15)."""
    bidirectional: bool | None = None
    """Bidirectional encoder, eq. (7.14); none: only with attention."""
    reversed_source: bool = False
    """Reverse the source for the encoder."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout between layers."""

    def resized(self, width: int) -> Self:
        return self.updated({"d_state": width})


def make(config: Config, sizes: Sizes) -> Halves:
    attends, cell = config.context == "attention", CELLS[config.cell]
    both = attends if config.bidirectional is None else config.bidirectional
    common = {"d_state": config.d_state, "n_layers": config.n_layers, "dropout": config.dropout}
    encoder: Encoder | Causal = (
        bidirectional_stack(BidirectionalConfig(**common), sizes.d_source, cell)
        if both
        else stack(RecurrentConfig(**common), sizes.d_source, cell)
    )
    width = encoder.d_out
    if config.reversed_source:  # what is attended to stands in the order of the source again
        encoder = SerialEncoder(Backwards(), encoder, *([Backwards()] if attends else []))
    own = RecurrentConfig(**common)
    decoder: Causal
    if config.context == "attention":
        decoder = attention_decoder(own, sizes.d_in, width, cell, config.score, config.output)
    else:
        readout = "first-last" if both else "last"  # where a layer has read all: at both ends if it reads both ways
        decoder = fixed_context_decoder(own, sizes.d_in, width, cell, config.context, readout)
    return Halves(encoder, decoder)


MODEL = ModelSpec(
    summary="recurrent encoder-decoder, with or without attention",
    kind="conditional",
    config=Config,
    tiny=Config(d_state=4, n_layers=2),
    make=make,
    reference="Bahdanau et al. 2015; eqs (7.20)-(7.22)",
    aliases=("encoder-decoder", "rnn-encoder-decoder", "bahdanau"),
    outputs=("next",),
    preset="quick",
    recipe={"lr": 1e-3},
    resize=Config.resized,
)
