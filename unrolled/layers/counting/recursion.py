"""Autoregressive forecasts: one step is a linear function of the last s values, and each step is fed the one before.

    z_{t+1} = b + sum_{tau < s} W_tau z_{t-tau},    forecasts of t+2, t+3, .. with forecasts in the place of values

The forecasts of all H steps are linear in the last s values too; that map follows from W by H steps of the recursion
and is applied as one causal convolution. The place of a missing value takes its own one-step forecast; before the start
the first value stands.

W and b are least squares over all windows (z_{t-s+1} .. z_{t+1}) without a missing value, of all series together
(autoregression.py). The order s is given, or the one with the least

    AICc  N log |Sigma_s| + 2 k N / (N - s D - D - 1)        BIC  N log |Sigma_s| + k log N

over the windows of the largest order, with Sigma_s the covariance of the errors and k = s D^2 + D + D (D + 1) / 2. All
Sigma_s come from one elimination of the moments: the newest lag first, and after s of them Sigma_s is what is left.

Yule (1927); Schwarz (1978); Hurvich & Tsai (1993).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal
from unrolled.core.errors import DataError
from unrolled.core.state import State
from unrolled.layers.conv.conv import convolve
from unrolled.layers.counting.autoregression import least_squares, moments
from unrolled.layers.counting.forecaster import Array, Span
from unrolled.layers.counting.linear_map import held

Criterion = Literal["aic", "bic"]
WINDOWS = 4  # for each weight of an equation, of the largest order that is tried
EXACT = 1e-12  # the share of a variance that is rounding
ROUNDING = float(np.finfo(np.float32).eps)  # of values, which are encoded in single precision


class Filled(NamedTuple):
    """What is carried of a series."""

    line: Tensor  # [R, s, D] the last values, the oldest first, missing ones filled
    begun: Tensor  # [R] 1 from the first observation on


class Recursion(Causal):
    """Series x [R, T, 2 D] (values, whether observed) -> [R, T, H * D].

    `weight` [D, s, D] holds the oldest lag first. Before it is fitted the forecast is the last value. A series starts
    with the first step at which one of the D was observed; the others are 0 there. Before it y is 0.
    """

    def __init__(self, d_step: int, horizon: int, order: int) -> None:
        super().__init__()
        self.d_in, self.d_out = 2 * d_step, horizon * d_step
        self.d_step, self.horizon, self.order = d_step, horizon, order
        last = torch.zeros(d_step, order, d_step)
        last[:, -1].fill_diagonal_(1)
        self.weight, self.bias = nn.Parameter(last), nn.Parameter(torch.zeros(d_step))

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        D, s = self.d_step, self.order
        y, seen = x[..., :D], x[..., D:] > 0.5  # [R, T, D]
        before = Filled(x.new_zeros(x.shape[0], s, D), x.new_zeros(x.shape[0])) if state is None else state
        here = seen.any(2)
        begun = (before.begun.expand(x.shape[0])[:, None] > 0) | (here.cumsum(1) > 0)  # [R, T]
        line = self._filled(torch.where(seen, y, 0), seen, before, begun)  # [R, s + T, D]
        W, b = self.map()
        forecasts = torch.where(begun[..., None], convolve(line[:, 1:], W, b, 1), 0)  # [R, T, H * D]
        return forecasts, Filled(line[:, -s:].clone(), begun[:, -1].to(x))

    def _filled(self, z: Tensor, seen: Tensor, before: Filled, begun: Tensor) -> Tensor:
        """z [R, T, D] behind the values before it, the first value before the start, forecasts where it is missing."""
        s = self.order
        line = torch.cat([before.line, z], 1)  # [R, s + T, D]
        waits = (~begun).sum(1)  # [R] steps before the start
        if bool((starts := (before.begun == 0) & begun[:, -1]).any()):
            first = z.gather(1, waits.clamp(max=z.shape[1] - 1)[:, None, None].expand(-1, 1, z.shape[2]))  # [R, 1, D]
            early = torch.arange(line.shape[1], device=z.device) < s + waits[:, None]  # [R, s + T]
            line = torch.where((starts[:, None] & early)[..., None], first, line)
        was_begun = torch.cat([before.begun[:, None] > 0, begun[:, :-1]], 1)
        gaps = was_begun[..., None] & ~seen  # [R, T, D]
        if not bool(gaps.any()):
            return line
        columns = list(line.unbind(1))
        for t in gaps.any(2).any(0).nonzero()[:, 0].tolist():
            window = torch.stack(columns[t : t + s], 1).flatten(1)  # [R, s D]
            columns[s + t] = torch.where(gaps[:, t], window @ self.weight.flatten(1).mT + self.bias, columns[s + t])
        return torch.stack(columns, 1)

    def map(self) -> tuple[Tensor, Tensor]:
        """The forecasts of all steps as weights [H * D, s, D] of the last values, and constants [H * D]."""
        D, n = self.d_step, self.order * self.d_step
        W = self.weight.flatten(1)  # [D, s D]
        ahead = torch.cat([torch.eye(n).to(W), W.new_zeros(n, 1)], 1)  # [s D, s D + 1]: the window itself
        one = torch.cat([W.new_zeros(D, n), self.bias[:, None]], 1)
        found = []
        for _ in range(self.horizon):
            found.append(W @ ahead + one)  # [D, s D + 1]
            ahead = torch.cat([ahead[D:], found[-1]])
        rows = torch.cat(found)
        return rows[:, :-1].unflatten(1, (-1, D)), rows[:, -1]

    def tick_multiply_adds(self, position: int) -> int:
        return self.d_out * self.order * self.d_step


class FittedRecursion(Recursion):
    """A recursion that is fitted by least squares."""

    def __init__(self, d_step: int, horizon: int, order: int, criterion: Criterion | None, ridge: float) -> None:
        """`criterion`: what chooses the order, up to the one given; None: it is the one given."""
        super().__init__(d_step, horizon, order)
        self.criterion, self.ridge = criterion, ridge

    def solve(self, spans: Sequence[Span], held_out: Sequence[Span] = ()) -> dict[str, Any]:
        """Fit to all spans; the order, where it was chosen or is less than the one given."""
        D = self.d_step
        data, most = _whole(spans, self.order, 1 if self.criterion is None else WINDOWS)
        s = most if self.criterion is None else _order(data, most, self.criterion)
        W, b = least_squares(data, D, slice(0, D), s, ridge=self.ridge, rounding=ROUNDING)  # [s, D, D], [D]
        with torch.no_grad():
            self.weight.zero_()
            self.weight[:, self.order - s :] = torch.from_numpy(W.transpose(2, 0, 1).copy())
            self.bias.copy_(torch.from_numpy(b))
        return {} if self.criterion is None and s == self.order else {"order": s}


def _whole(spans: Sequence[Span], order: int, share: int) -> tuple[list[Array], int]:
    """Stretches of series without a missing value, and the largest order of which they have enough windows; where that
    is less than of series whose missing values are held, these."""
    D = spans[0].y.shape[1] if spans else 1
    runs = [run for span in spans for run in _runs(span)]
    most = _largest(runs, order, share, D)
    if most < order and not all(span.seen.all() for span in spans):
        filled = [held(span) for span in spans]
        if (more := _largest(filled, order, share, D)) > most:
            runs, most = filled, more
    if most < 1:
        longest = max((int(span.seen.any(1).sum()) for span in spans), default=0)
        raise DataError(
            f"no training series is long enough for an autoregression: at least 3 steps are needed, but the longest "
            f"series has {longest}; give longer series"
        )
    return runs, most


def _runs(span: Span) -> list[Array]:
    """The longest stretches [T', D] in which all was observed."""
    whole = np.concatenate([[False], span.seen.all(1), [False]])
    edges = np.flatnonzero(whole[1:] != whole[:-1])
    return [span.y[begin:end] for begin, end in edges.reshape(-1, 2).tolist()]


def _largest(data: Sequence[Array], order: int, share: int, D: int) -> int:
    """The largest order up to one that has `share` windows for each weight of an equation; 1 needs 2 windows."""
    lengths = np.array([len(z) for z in data] or [0])
    for s in range(order, 0, -1):
        N = int(np.maximum(lengths - s, 0).sum())
        if share * (s * D + 1) <= N or (s == 1 and N >= 2):
            return s
    return 0


def _order(data: Sequence[Array], most: int, criterion: Criterion) -> int:
    """The order with the least criterion."""
    D = data[0].shape[1]
    N, sums, products, _ = moments([z for z in data if len(z) > most], most + 1)
    mean = sums / N
    covariances = left(products / N - mean[:, :, None, None] * mean)[1:]  # of orders 1, 2, ..
    s = np.arange(1, most + 1)
    k = s * D**2 + D + D * (D + 1) / 2
    penalty = k * np.log(N) if criterion == "bic" else 2 * k * N / np.maximum(N - s * D - D - 1, 1e-9)
    return int(np.argmin(N * np.linalg.slogdet(covariances)[1] + penalty)) + 1


def left(C: Array) -> Array:
    """What is left of the covariance of the newest point of a window when 0, 1, .. of those before it are known:
    [S, D, D] from C [S, D, S, D], the oldest point first. Nothing is less than rounding."""
    S, D = C.shape[:2]
    A = C[::-1, :, ::-1].reshape(S * D, S * D).copy()  # the newest point first
    size = np.diag(A).copy()
    floor = np.diag(np.maximum(EXACT * size[:D], 1e-300))
    found = [A[:D, :D] + floor]
    for k in range(D, S * D):
        if A[k, k] > EXACT * size[k]:
            A -= np.outer(A[:, k], A[k]) / A[k, k]
        if (k + 1) % D == 0:
            found.append(A[:D, :D] + floor)
    return np.stack(found)
