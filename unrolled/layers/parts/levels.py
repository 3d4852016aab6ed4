"""Series whose level moves: what a model says of them is relative to what it has read.

    last      y_t means shift + value, shift the last observed value up to t              a causal layer
    input     the same with what was just read, behind an encoder                          a causal layer
    window    x' = (x - m) / s, y means m + s value, m and s of the whole window           an encoder
              reversible instance normalisation, Kim et al. 2022
    units     x' = m + s x, y' = (y - m) / s, m and s of the series, known before          for what is fitted to the
              data as it is, such as smoothing with a factor for each season

`rescale(y, shift, scale)` gives outputs that mean shift + scale * value; it is the emission's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from unrolled.core.causal import Causal, Conditional
from unrolled.core.compose import pick
from unrolled.core.state import State
from unrolled.layers.parts.assembled import Decoder, Reader

Rescale = Callable[[Tensor, Tensor, Tensor], Tensor]
SMALLEST = 1e-2  # of a scale, in standard deviations of the series: a window that is flat is not blown up


class Columns(NamedTuple):
    """Which columns of x are values, and how many steps ahead the output says."""

    d_step: int
    horizon: int
    observed: bool

    def split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Values [B, T, D] and where they are observed [B, T, D]."""
        values, D = x[..., : self.d_step], self.d_step
        return values, x[..., D : 2 * D] > 0.5 if self.observed else torch.ones_like(values, dtype=torch.bool)

    def ahead(self, values: Tensor) -> Tensor:
        """[.., D] for each step of the horizon: [.., H D]."""
        return values.repeat(*[1] * (values.dim() - 1), self.horizon)


class FromInput(Decoder):
    """A decoder whose outputs are relative to the value that it has just read, or fed back."""

    columns: Columns
    rescale: Rescale

    def anchored(self, columns: Columns, rescale: Rescale) -> Self:
        self.columns, self.rescale = columns, rescale
        return self

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        y, state = super().forward(x, state)
        shift = self.columns.ahead(self.columns.split(x)[0])
        return self.rescale(y, shift, torch.ones_like(shift)), state

    def at(self, x: Tensor, places: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        y, state = super().at(x, places, state)
        shift = self.columns.ahead(pick(self.columns.split(x)[0], places))
        return self.rescale(y, shift, torch.ones_like(shift)), state


class FromLast(FromInput):
    """The same where values may be missing: relative to the last observed one, which the state holds too."""

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        values, seen = self.columns.split(x)
        before, inner = (values.new_zeros(x.shape[0], self.columns.d_step), None) if state is None else state
        held = hold(values, seen, before)  # [B, T, D]
        y, inner = Decoder.forward(self, x, inner)
        shift = self.columns.ahead(held)
        return self.rescale(y, shift, torch.ones_like(shift)), (held[:, -1].clone(), inner)

    def at(self, x: Tensor, places: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        values, seen = self.columns.split(x)
        before, inner = (values.new_zeros(x.shape[0], self.columns.d_step), None) if state is None else state
        held = hold(values, seen, before)  # [B, T, D]
        y, inner = Decoder.at(self, x, places, inner)
        shift = self.columns.ahead(pick(held, places))
        return self.rescale(y, shift, torch.ones_like(shift)), (held[:, -1].clone(), inner)


def hold(values: Tensor, seen: Tensor, before: Tensor) -> Tensor:
    """The last observed value up to each step [B, T, D]; `before` [B, D] where there is none yet.

    >>> x = torch.tensor([[[5.0], [0.0], [7.0]]])
    >>> hold(x, torch.tensor([[[False], [False], [True]]]), torch.tensor([[3.0]])).flatten().tolist()
    [3.0, 3.0, 7.0]
    """
    if values.shape[1] == 1:
        return torch.where(seen, values, before[:, None])
    if bool(seen.all()):
        return values
    steps = torch.arange(1, values.shape[1] + 1, device=values.device)[None, :, None]
    last = torch.where(seen, steps, 0).cummax(1).values  # [B, T, D], 0: none
    return torch.cat([before[:, None], values], dim=1).gather(1, last)


class OfWindow(Reader):
    """A reader of windows that are brought to mean 0 and deviation 1, each by itself; what it says is brought back."""

    columns: Columns
    rescale: Rescale

    def normalised(self, columns: Columns, rescale: Rescale) -> OfWindow:
        self.columns, self.rescale = columns, rescale
        return self

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        values, seen = self.columns.split(x)
        seen = seen & mask[:, :, None]
        n = seen.sum(1, keepdim=True).clamp(min=1)  # [B, 1, D]
        mean = torch.where(seen, values, 0.0).sum(1, keepdim=True) / n
        rest = torch.where(seen, values - mean, 0.0)
        scale = (rest.square().sum(1, keepdim=True) / n).sqrt() + SMALLEST
        y, after = super().forward(torch.cat([rest / scale, x[..., self.columns.d_step :]], dim=-1), mask)
        return self.rescale(y, self.columns.ahead(mean), self.columns.ahead(scale)), after


class InUnits(Conditional):
    """A model that reads and predicts the units of the data; its source [B, 2, D] is shift and scale."""

    def __init__(self, decoder: UnitsDecoder) -> None:
        super().__init__()
        self.decoder: UnitsDecoder = decoder
        self.d_out = decoder.d_out

    def condition(self, source: Any, mask: Tensor | None = None) -> State:
        return source, None

    def solve(self, series: Any, held_out: Any) -> Any:
        """Fit the body to series in the units of the data."""
        body: Any = self.decoder.body
        return body.solve(series, held_out)


class UnitsDecoder(Causal):
    """The body between two changes of units; from no state, units are those of x."""

    def __init__(self, body: Causal, columns: Columns) -> None:
        super().__init__()
        self.body, self.columns = body, columns
        self.d_in, self.d_out = body.d_in, body.d_out
        self.receptive_field, self.max_length, self.state_grows = (
            body.receptive_field, body.max_length, body.state_grows,
        )  # fmt: skip

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        D = self.columns.d_step
        if state is None:
            none = x.new_zeros(x.shape[0], 2, D)
            none[:, 1] = 1
            state = none, None
        units, inner = state
        shift, scale = units[:, None, 0].to(x.dtype), units[:, None, 1].to(x.dtype)  # [B, 1, D]
        values, seen = self.columns.split(x)
        x = torch.cat([torch.where(seen, shift + scale * values, 0.0), x[..., D:]], dim=-1)
        y, inner = self.body(x, inner)
        return (y - self.columns.ahead(shift)) / self.columns.ahead(scale), (units, inner)
