"""Long short-term memory.

    c_t = f * c_{t-1} + i * tanh(W_c h_{t-1} + U_c x_t + b_c)        f, i, o = sigmoid(W h_{t-1} + U x_t + b)
    h_t = o * tanh(c_t)                                              (projected to d_proj when given)

Hochreiter & Schmidhuber (1997), forget gate by Gers et al. (2000); eqs (7.16)-(7.17). Weights interchange with
torch.nn.LSTM.
"""

from __future__ import annotations

from collections.abc import Callable

from pydantic import Field

from unrolled.core.spec import ModelSpec, Sizes
from unrolled.layers.parts.decoders import AttentionDecoder, attention_decoder
from unrolled.layers.recurrent.cells import LSTM, Cell
from unrolled.layers.recurrent.family import RecurrentConfig, stack
from unrolled.layers.recurrent.recurrent import Stacked


class Config(RecurrentConfig):
    d_proj: int | None = Field(None, ge=1)
    """Width of the projected h; none: d_state."""
    memory: int | None = Field(None, ge=1)
    """Initialise the bias of the forget gate so that units remember for 1 to this many steps; none: a few steps."""


def cell_of(config: Config) -> Callable[[int, int], Cell]:
    def cell(d_in: int, d_state: int) -> LSTM:
        made = LSTM(d_in, d_state, d_proj=config.d_proj)
        return made if config.memory is None else made.remember(config.memory)

    return cell


def make(config: Config, sizes: Sizes) -> Stacked:
    return stack(config, sizes.d_in, cell_of(config))


def attending(config: Config, d_in: int, d_source: int) -> AttentionDecoder:
    return attention_decoder(config, d_in, d_source, cell_of(config))


MODEL = ModelSpec(
    summary="long short-term memory",
    kind="causal",
    config=Config,
    tiny=Config(d_state=4, n_layers=2),
    make=make,
    reference="Hochreiter & Schmidhuber 1997; eqs (7.16)-(7.17)",
    preset="quick",
    resize=Config.resized,
    attend=attending,
    cell=cell_of,
)
