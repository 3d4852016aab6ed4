"""Recurrent decoders: what the encoder made of the source starts them, stays beside them, or is attended to.

    z* = readout(v^(1) .. v^(S)), by default v at each row's last real step        the code, or context vector
    (h_1, h_2, ..)^(0) = tanh(W_z z* + b_z)                                        all layers; of an LSTM h and c

    start        h^(t) = f(h^(t-1), x^(t))                              Fig. 7.9 (a); Sutskever et al. (2014)
    every-step   h^(t) = f(h^(t-1), [x^(t); z*]),  y^(t) = [h^(t); z*]  Fig. 7.9 (b); Cho et al. (2014)
    attention    s^(t) = f(s^(t-1), [x^(t); u^(t)]), `attention_cell.py`   Fig. 7.10, eq. (7.22); Bahdanau et al. (2015)

x^(t) is the embedded previous token, v the encoded source. Attention stands in the lowest layer; what is above it is an
ordinary stack (as in Wu et al. 2016), so only the lowest goes tick by tick. All are `Sourced`: `start(v, mask)` makes
the state before the first tick.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal, tick_multiply_adds
from unrolled.core.compose import without_padding
from unrolled.core.errors import UsageError
from unrolled.core.state import Fixed, State
from unrolled.core.trace import note, tracing
from unrolled.layers.attention.attention_cell import Aligned
from unrolled.layers.attention.readout import Readout, readout_named
from unrolled.layers.recurrent.cells import Cell
from unrolled.layers.recurrent.family import SCANS, RecurrentConfig
from unrolled.layers.recurrent.recurrent import Recurrent, Stacked

NEEDS_SOURCE = "this decoder needs a source: start with the state that start(encoded, mask) returns"


class Initial(nn.Module):
    """tanh(W_z z* + b_z), cut into the states [B, N] of all layers."""

    def __init__(self, d_code: int, cells: Sequence[Cell]) -> None:
        super().__init__()
        self.sizes = [cell.state_size for cell in cells]
        self.W_z = nn.Linear(d_code, sum(self.sizes))

    def forward(self, z: Tensor) -> tuple[Tensor, ...]:
        h = torch.tanh(self.W_z(z)).to(self.W_z.weight.dtype)  # [B, sum of N]; a recurrence keeps its precision
        return tuple(part.contiguous() for part in h.split(self.sizes, dim=-1))


def width_in(stack: Stacked) -> int:
    """The width of what the lowest layer reads."""
    lowest: Any = stack.layers[0]
    return int(lowest.d_in)


class StartDecoder(Causal):
    """The code starts the decoder, Fig. 7.9 (a): all that it knows of the source is its state before the first tick."""

    source: str | None = "source"

    def __init__(self, stack: Stacked, readout: Readout) -> None:
        super().__init__()
        self.stack = stack
        self.readout = readout
        self.initial = Initial(readout.d_out, [layer.cell for layer in stack])
        self.d_in, self.d_out = width_in(stack), stack.d_out

    def start(self, source: Tensor, mask: Tensor) -> State:
        return self.initial(self.readout(source, mask))

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        if state is None:
            raise UsageError(NEEDS_SOURCE)
        return self.stack(x, state)

    def tick_multiply_adds(self, position: int) -> int:
        """What makes the first state is done before the first tick."""
        return tick_multiply_adds(self.stack, position)


class EveryStepDecoder(StartDecoder):
    """The code also stands beside each input and each output, Fig. 7.9 (b): y^(t) = [h^(t); z*]."""

    def __init__(self, stack: Stacked, readout: Readout) -> None:
        super().__init__(stack, readout)
        self.d_in, self.d_out = width_in(stack) - readout.d_out, stack.d_out + readout.d_out

    def start(self, source: Tensor, mask: Tensor) -> State:
        z = self.readout(source, mask)  # [B, D]
        return Fixed(z), self.initial(z)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        if state is None:
            raise UsageError(NEEDS_SOURCE)
        fixed, h = state
        z = fixed.tree.unsqueeze(1).expand(-1, x.shape[1], -1)  # [B, T, D]
        y, h = self.stack(torch.cat([x, z], dim=-1), h)
        return torch.cat([y, z], dim=-1), (fixed, h)  # [B, T, N + D]


class AttentionDecoder(Causal):
    """The decoder attends to the source at each tick, Fig. 7.10; the code that starts it is the mean of the source.

    With `output="deep"` y^(t) = tanh(W_o [s^(t); u^(t); x^(t)]) (after Bahdanau et al. 2015, A.2.2), of the width of
    s; with "state" y^(t) = s^(t), as in eq. (7.22). Noted as "attention": alpha [B, 1, T, S], once a call.
    """

    source: str | None = "source"

    def __init__(
        self,
        aligned: Aligned,
        above: Sequence[Recurrent] = (),
        output: Literal["deep", "state"] = "deep",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.aligned = aligned
        self.above = Stacked(above, dropout) if above else None
        self.readout = readout_named("mean", aligned.d_source)
        self.initial = Initial(aligned.d_source, [aligned.cell, *(layer.cell for layer in above)])
        self.d_out = self.above.d_out if self.above else aligned.cell.output_size
        read = self.d_out + aligned.d_source + aligned.d_in
        self.W_o = nn.Linear(read, self.d_out) if output == "deep" else None
        self.dropout = nn.Dropout(dropout)
        self.d_in = aligned.d_in

    def start(self, source: Tensor, mask: Tensor) -> State:
        with torch.autocast(source.device.type, enabled=False):  # what ticks work with has the weights' precision
            source = without_padding(source, mask).to(self.initial.W_z.weight.dtype)
            return Fixed(self.aligned.attended(source, mask)), self.initial(self.readout(source, mask))

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        if state is None:
            raise UsageError(NEEDS_SOURCE)
        fixed, (first, *rest) = state
        with torch.autocast(x.device.type, enabled=False):
            x = x.to(first.dtype)
            states, alpha, last = self.aligned(x, fixed.tree, first)  # [B, T, N], [B, T, S], [B, N]
            if tracing():
                self._note(x, states, alpha, fixed.tree.values, first)
            y, after = self.aligned.cell.output(states), (last,)  # [B, T, D']
            if self.above is not None:
                y, above = self.above(self.dropout(y), tuple(rest))
                after += above
            if self.W_o is not None:
                u = alpha @ fixed.tree.values  # [B, T, D]
                y = torch.tanh(self.W_o(torch.cat([y, u, x], dim=-1)))
        return y, (fixed, after)

    def _note(self, x: Tensor, states: Tensor, alpha: Tensor, values: Tensor, h0: Tensor) -> None:
        """As `Recurrent` does: states [B, T, N], their parts and gates; and the weights [B, 1, T, S]."""
        cell = self.aligned.cell
        note("attention", alpha.unsqueeze(1))
        note("state", states)
        note("parts", cell.parts(states))
        before = torch.cat([h0.unsqueeze(1), states[:, :-1]], dim=1)  # [B, T, N]
        if gates := cell.gates(torch.cat([x, alpha @ values], dim=-1), before):
            note("gates", gates)

    def serial_steps(self, length: int) -> int:
        return length * (1 + (0 if self.above is None else len(self.above.layers)))

    def tick_multiply_adds(self, position: int) -> int:
        """Keys and W_u v are made before the first tick; the source counts as long as what was written."""
        aligned, score = self.aligned, self.aligned.score
        W_u = aligned.W_ih[:, aligned.d_in :]  # [G, D]
        read = score.pair_cost + len(W_u) + (0 if self.W_o is None else aligned.d_source)
        fixed = tick_multiply_adds(aligned.cell, position) - W_u.numel() + score.query_cost
        fixed += 0 if self.above is None else tick_multiply_adds(self.above, position)
        return fixed + (position + 1) * read + (0 if self.W_o is None else self.W_o.weight.numel())


def fixed_context_decoder(
    config: RecurrentConfig,
    d_in: int,
    d_source: int,
    cell: Callable[[int, int], Cell],
    context: Literal["start", "every-step"],
    readout: str = "last",
) -> StartDecoder:
    """`n_layers` layers of `cell(d_in, d_state)` that one vector of the source starts."""
    code = readout_named(readout, d_source)
    kind = StartDecoder if context == "start" else EveryStepDecoder
    layers = _layers(config, config.n_layers, d_in if context == "start" else d_in + code.d_out, cell)
    return kind(Stacked(layers, config.dropout), code)


def attention_decoder(
    config: RecurrentConfig,
    d_in: int,
    d_source: int,
    cell: Callable[[int, int], Cell],
    score: str = "additive",
    output: Literal["deep", "state"] = "deep",
) -> AttentionDecoder:
    """`n_layers` layers of `cell(d_in, d_state)`, of which the lowest attends."""
    first = cell(d_in + d_source, config.d_state)
    aligned = Aligned(first, d_in, d_source, score)
    above = _layers(config, config.n_layers - 1, first.output_size, cell)
    return AttentionDecoder(aligned, above, output, config.dropout)


def _layers(config: RecurrentConfig, n: int, d_in: int, cell: Callable[[int, int], Cell]) -> list[Recurrent]:
    layers: list[Recurrent] = []
    for _ in range(n):
        layers.append(Recurrent(cell(d_in, config.d_state), SCANS[config.scan]))
        d_in = layers[-1].d_out
    return layers
