"""Jordan network and output feedback: the recurrent connection comes from the output.

    output:  h_t = sigma(W y_{t-1} + U x_t + b)                            Jordan (1986)
    both:    h_t = sigma(W_hh h_{t-1} + W_hx (x_t + T(y_{t-1})) + b)       eq. (7.3)
    y_t = softmax(V h_t + c)

It runs free: what returns is its own prediction, not the true token. It owns its head, for the output is its state.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from unrolled.core import config
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.recurrent.cells import Jordan, OutputFeedback
from unrolled.layers.recurrent.recurrent import Recurrent


class Config(config.Config):
    d_state: int = Field(256, ge=1)
    """Hidden units."""
    feedback: Literal["output", "both"] = "output"
    """What returns: the output alone (Jordan) or output and hidden state (eq. 7.3)."""
    activation: Literal["tanh", "relu", "sigmoid", "identity"] = "tanh"
    """Sigma."""
    initial: Literal["zero", "learned"] = "zero"
    """The state before the first step."""

    def resized(self, width: int) -> Config:
        return self.updated({"d_state": width})


def make(config: Config, sizes: Sizes) -> Recurrent:
    kind = Jordan if config.feedback == "output" else OutputFeedback
    cell = kind(sizes.d_in, config.d_state, sizes.d_out, activation=config.activation, output_activation="softmax")
    return Recurrent(cell, initial=config.initial)


MODEL = ModelSpec(
    summary="the recurrent connection comes from the output",
    kind="causal",
    config=Config,
    tiny=Config(d_state=4),
    make=make,
    reference="Jordan 1986; eq. (7.3)",
    outputs=("next",),
    owns_head=True,
    resize=Config.resized,
)
