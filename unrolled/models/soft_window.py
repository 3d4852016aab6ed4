"""Soft window: a recurrent decoder that reads its source through a window which slides from left to right.

    phi(t, u) = sum_k alpha_k exp(-beta_k (kappa_k - u)^2),     kappa_t = kappa_{t-1} + exp(kappa^)
    w_t = sum_u phi(t, u) c_u

Graves (2013), section 5.1, for handwriting of a given text: c are the characters. The layer is in
layers/attention/soft_window.py. Alignments that do not go from left to right need `seq2seq`.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field
from torch import nn

from unrolled.core import config
from unrolled.core.compose import Each
from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.attention.soft_window import WindowDecoder
from unrolled.layers.parts.encoder_decoder import Halves
from unrolled.layers.recurrent.cells import GRU, LSTM
from unrolled.layers.recurrent.family import SCANS
from unrolled.layers.recurrent.recurrent import Recurrent


class Config(config.Config):
    cell: Literal["lstm", "gru"] = "lstm"
    """The recurrent cell of all layers."""
    d_state: int = Field(256, ge=1)
    """Units per layer."""
    n_layers: int = Field(2, ge=1)
    """Layers; the lowest moves the window."""
    n_windows: int = Field(10, ge=1)
    """Gaussians of which the window is made."""

    def resized(self, width: int) -> Self:
        return self.updated({"d_state": width})


def make(config: Config, sizes: Sizes) -> Halves:
    cell = {"lstm": LSTM, "gru": GRU}[config.cell]
    lowest = cell(sizes.d_in + sizes.d_source, config.d_state)
    beside, below, above = sizes.d_in + sizes.d_source, lowest.output_size, []
    for _ in range(config.n_layers - 1):
        above.append(Recurrent(cell(beside + below, config.d_state), SCANS["fused"]))
        below = above[-1].d_out
    decoder = WindowDecoder(lowest, sizes.d_in, sizes.d_source, config.n_windows, above)
    encoder = Each(nn.Identity())
    encoder.d_out = sizes.d_source
    return Halves(encoder, decoder)


MODEL = ModelSpec(
    summary="recurrent decoder with a soft window that slides over the source",
    kind="conditional",
    config=Config,
    tiny=Config(d_state=4, n_layers=2, n_windows=2),
    make=make,
    reference="Graves 2013, eqs (46)-(53)",
    aliases=("graves", "sliding-window"),
    outputs=("next",),
    recipe={"lr": 1e-3},
    resize=Config.resized,
)
