"""Jordan network: recurrent, with feedback from its output.

    output:  h_t = sigma(W y_{t-1} + U x_t + b)                            Jordan (1986)
    both:    h_t = sigma(W_hh h_{t-1} + W_hx (x_t + T(y_{t-1})) + b)       eq. (7.3)
    y_t = s(V h_t + c)

What returns is what the outputs mean: softmax of tokens, sigmoid of bits, numbers as they are. It is the model's own
prediction (`feedback_from = own`), or the true one (`truth`), which is what was just read: the same weights, without a
memory of the output. With `inputs = first` every input but the first is 0, so that one input starts a whole sequence
(one-to-many). It owns its head, because the output is its state.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from unrolled.core import config
from unrolled.core.causal import Causal
from unrolled.core.compose import Serial
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.core.state import State
from unrolled.layers.recurrent.cells import Feedback, Jordan, OutputFeedback
from unrolled.layers.recurrent.recurrent import Forced, Recurrent

MEANS = {"tokens": "softmax", "bits": "sigmoid"}  # what outputs are turned into; numbers stay as they are


class Config(config.Config):
    d_state: int = Field(256, ge=1)
    """Hidden units."""
    feedback: Literal["output", "both"] = "output"
    """What is fed back: the output alone (Jordan), or output and hidden state (eq. 7.3)."""
    feedback_from: Literal["own", "truth"] = "own"
    """Which output is fed back: the model's own, or the true one (teacher forcing)."""
    inputs: Literal["all", "first"] = "all"
    """Which inputs are read: all, or the first alone and zeros after it."""
    activation: Literal["tanh", "relu", "sigmoid", "identity"] = "tanh"
    """Sigma."""
    initial: Literal["zero", "learned"] = "zero"
    """Initial state: zero or learned."""

    def resized(self, width: int) -> Config:
        return self.updated({"d_state": width})


class FirstOnly(Causal):
    """x_1, 0, 0, ...; the state says whether the first was read."""

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        begun = x.new_zeros(x.shape[0]) if state is None else state  # [B]
        first = torch.zeros_like(x)
        first[:, 0] = x[:, 0] * (1 - begun)[:, None]
        return first, torch.ones_like(begun)


class Told(Causal):
    """A feedback cell whose previous output is the true one: what was just read, as the outputs mean it.

    Of tokens that is their one-hot vector, of numbers the first columns of x, as often as the output has room for them.
    """

    receptive_field: int | None

    def __init__(self, cell: Feedback, sizes: Sizes) -> None:
        super().__init__()
        self.layer = Forced(cell)
        self.sizes, self.d_out = sizes, sizes.d_out
        self.receptive_field = self.layer.receptive_field

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        if x.dim() == 2:
            x = F.one_hot(x, self.sizes.d_in).to(next(self.parameters()).dtype)  # [B, T, V]
        true = x[..., : self.sizes.d_step or min(self.sizes.d_in, self.d_out)]
        true = true.repeat(1, 1, -(-self.d_out // true.shape[-1]))[..., : self.d_out]  # [B, T, q]
        return self.layer(torch.cat([x, true], dim=-1), state)


def make(config: Config, sizes: Sizes) -> Causal:
    kind = Jordan if config.feedback == "output" else OutputFeedback
    means = MEANS.get(sizes.targets, "identity")
    cell = kind(sizes.d_in, config.d_state, sizes.d_out, activation=config.activation, output_activation=means)
    if config.feedback_from == "truth":
        return Told(cell, sizes)
    layer = Recurrent(cell, initial=config.initial)
    if config.inputs == "all":
        return layer
    body = Serial(FirstOnly(), layer)
    body.d_out = sizes.d_out
    return body


def under(config: Config) -> ModelSpec:
    """What was just read is known only before an input layer."""
    return TOLD if config.feedback_from == "truth" else MODEL


MODEL = ModelSpec(
    summary="recurrent network with feedback from its output",
    kind="causal",
    config=Config,
    tiny=Config(d_state=4),
    make=make,
    reference="Jordan 1986; eq. (7.3)",
    outputs=("next",),
    owns_head=True,
    resize=Config.resized,
    under=under,
)
TOLD = replace(MODEL, reads=("tokens", "numbers"))
