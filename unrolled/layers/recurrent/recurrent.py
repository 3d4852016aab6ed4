"""Recurrent layers: a cell with a way to run it, stacks of them, and both directions at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, cast

import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal, Encoder, serial_depth
from unrolled.core.compose import Serial, require_right_padding
from unrolled.core.errors import UsageError
from unrolled.core.state import State
from unrolled.core.trace import note, tracing
from unrolled.layers.recurrent.cells import Cell, Feedback
from unrolled.layers.recurrent.deer import deer
from unrolled.layers.recurrent.fused import fused
from unrolled.layers.recurrent.scan import Scan, trajectory


class Recurrent(Causal):
    """A cell run along time by a scan: x [B, T, D] -> y [B, T, D']; the state is the cell's, one tensor [B, N].

    The state given is never modified. `initial="learned"` makes h_0 a parameter instead of zero.

    >>> from unrolled.layers.recurrent.cells import GRU
    >>> y, state = Recurrent(GRU(3, 4))(torch.zeros(2, 5, 3))
    >>> tuple(y.shape), tuple(state.shape)
    ((2, 5, 4), (2, 4))
    """

    def __init__(self, cell: Cell, scan: Scan = fused, initial: str = "zero") -> None:
        super().__init__()
        if initial not in ("zero", "learned"):
            raise UsageError(f"invalid value initial = '{initial}': expected 'zero' or 'learned'")
        self.cell = cell
        self.scan = scan
        self.h_0 = nn.Parameter(torch.zeros(cell.state_size)) if initial == "learned" else None
        self.receptive_field = cell.receptive_field
        self.d_in, self.d_out = cell.input_size, cell.output_size

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        if torch._C._is_any_autocast_enabled() and torch.is_autocast_enabled(x.device.type):
            return self._unmixed(x, state)
        if state is None:
            state = self.initial_state(x)
        if tracing():
            self._note(x, state)
        return self.scan(self.cell, x, state)

    def _received(self, state: State, rows: int) -> State:
        """Of the cell's own width; it is never written into, whatever graph it belongs to."""
        N = self.cell.state_size
        if not isinstance(state, Tensor) or state.shape != (rows, N):
            found = list(state.shape) if isinstance(state, Tensor) else type(state).__name__
            raise UsageError(
                f"expected a state of shape [{rows}, {N}] for a layer of width {N} and {rows} rows, found {found}"
            )
        return state

    def serial_steps(self, length: int) -> int:
        """In parallel over time: log2 T steps in each iteration; how many iterations depends on the data."""
        if self.receptive_field == 1:
            return 1
        return math.ceil(math.log2(max(length, 2))) if self.scan is deer else length

    def _unmixed(self, x: Tensor, state: State | None) -> tuple[Tensor, State]:
        """Under autocast a recurrence keeps the precision of its weights, for its rounding adds up over time."""
        dtype = next((p.dtype for p in self.parameters()), x.dtype)
        with torch.autocast(x.device.type, enabled=False):
            return self.forward(x.to(dtype), state)

    def initial_state(self, x: Tensor) -> Tensor:
        if self.h_0 is None:
            return x.new_zeros(x.shape[0], self.cell.state_size)  # [B, N]
        return self.h_0.expand(x.shape[0], -1)  # [B, N]

    def _note(self, x: Tensor, h0: Tensor) -> None:
        """Offer the states [B, T, N], their parts and, of a gated cell, its gates by name (each [B, T, .])."""
        states = trajectory(self.cell, x, h0)  # [B, T, N]
        note("state", states)
        note("parts", self.cell.parts(states))
        if gates := self.cell.gates(x, torch.cat([h0.unsqueeze(1), states[:, :-1]], dim=1)):
            note("gates", gates)


class Stacked(Serial):
    """Recurrent layers one above the other (book eq. 7.15), with dropout between them and none after the last."""

    def __init__(self, layers: Sequence[Recurrent], dropout: float = 0.0) -> None:
        super().__init__(*layers)
        self.dropout = nn.Dropout(dropout)
        self.d_out = layers[-1].d_out

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        before = (None,) * len(self.layers) if state is None else state
        after = []
        for i, (layer, s) in enumerate(zip(self.layers, before, strict=True)):
            x, s = layer(self.dropout(x) if i and self.training else x, s)
            after.append(s)
        return x, tuple(after)


class Forced(Causal):
    """A feedback cell (Jordan, eq. 7.3) whose previous output is given: teacher forcing with the same weights.

    The input is x_t and y_{t-1} side by side, [B, T, D + q]; the output z [B, T, q] (logits). With y_{t-1} known,
    Jordan has no memory left (receptive field 1), and eq. (7.3) is an Elman scan over x_t + T(y_{t-1}).
    """

    def __init__(self, cell: Feedback, scan: Scan = fused) -> None:
        super().__init__()
        self.cell = cell
        self.scan = scan
        self.receptive_field = cell.inner.receptive_field
        self.d_in, self.d_out = cell.input_size + cell.output_size, cell.output_size

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        inner = self.cell.inner
        if state is None:
            state = x.new_zeros(x.shape[0], inner.state_size)  # [B, N]
        merged = self.cell.merge(x[..., : self.cell.input_size], x[..., self.cell.input_size :])  # [B, T, .]
        h, state = self.scan(inner, merged, state)
        return self.cell.read(h), state

    def serial_steps(self, length: int) -> int:
        return 1 if self.receptive_field == 1 else length


class Sized(Protocol):
    d_out: int


def reverse(x: Tensor, mask: Tensor) -> Tensor:
    """Each row of x [B, S, D] backwards within its own real length; the padding stays behind it."""
    t = torch.arange(x.shape[1], device=x.device)  # [S]
    lengths = mask.sum(dim=1, keepdim=True)  # [B, 1]
    order = torch.where(mask, lengths - 1 - t, t)  # [B, S]
    return x.gather(1, order.unsqueeze(-1).expand_as(x))  # [B, S, D]


class Bidirectional(Encoder):
    """One layer reads forwards, one backwards, outputs side by side (book eq. 7.14): y [B, S, D_f + D_b].

    The reverse pass starts at each row's own last real step, so that padding (on the right, anything, NaN too) enters
    neither direction; outputs there are zero.
    """

    def __init__(self, forward: Causal, backward: Causal) -> None:
        super().__init__()
        self.ahead = forward
        self.back = backward
        self.d_out = cast(Sized, forward).d_out + cast(Sized, backward).d_out

    def serial_steps(self, length: int) -> int:
        """Both directions at the same time."""
        return max(serial_depth(self.ahead, length), serial_depth(self.back, length))

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        require_right_padding(mask, "a bidirectional layer")
        padding = ~mask.unsqueeze(-1)  # [B, S, 1]
        x = x.masked_fill(padding, 0)
        ahead = self.ahead(x)[0]  # [B, S, D_f]
        back = reverse(self.back(reverse(x, mask))[0], mask)  # [B, S, D_b]
        return torch.cat([ahead, back], dim=-1).masked_fill(padding, 0), mask


class BidirectionalStack(Encoder):
    """Bidirectional layers one above the other, each seeing both directions of the one below; dropout between them."""

    def __init__(self, layers: Sequence[Bidirectional], dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.dropout = nn.Dropout(dropout)
        self.d_out = layers[-1].d_out

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        for i, layer in enumerate(self.layers):
            x, mask = layer(self.dropout(x) if i and self.training else x, mask)
        return x, mask
