"""The next H values as a linear function of the last L: a causal convolution with H outputs, fitted by a ridge.

    y_{t+h} = b_h + sum_{tau < L} W_{h,tau} z_{t-tau}                        h = 1 .. H

z are the values, of missing ones the last observed (held.py); before the start the first value stands. W is fitted to
all whole windows (z_{t-L+1} .. z_{t+H}) of the training series, held values among them. With x the first L values of a
window, the forms differ in the features f whose weights V the ridge keeps small, and in what is added to V f:

    linear    f = x
    n-linear  f = x - x_L, the last value x_L taken off and added again          W = V f + x_L
    d-linear  f = (a, x - a), a the moving average of x over 25, its ends repeated

    V = argmin sum |y - V f - b|^2 + N s v |V|^2,       v the mean variance of a feature, N the number of windows

All f are linear in x, so the moments of the windows (autoregression.py), transformed, are all that is needed. s is the
one of `STRENGTHS` with the least squared error on held-out windows or, where there are none, with the least
generalised cross-validation (RSS / N) / (1 - p / N)^2, p the effective number of parameters of an output.

L is given, or the best of several, likewise. Where training series are too short for it, fewer of the newest values are
read: as many as there are windows.

Zeng, Chen, Zhang & Xu (2023), "Are Transformers Effective for Time Series Forecasting?"; Hoerl & Kennard (1970);
Golub, Heath & Wahba (1979).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal
from unrolled.core.errors import DataError
from unrolled.core.state import State, join_rows, split_rows
from unrolled.layers.conv.conv import convolve
from unrolled.layers.counting.autoregression import moments
from unrolled.layers.counting.forecaster import Array, Span
from unrolled.layers.counting.held import held_after, hold, nothing_held

STRENGTHS = (1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0, 10.0)
AVERAGED = 25  # values of the moving average of d-linear
NEARLY = 0.98  # as many windows
TINY = 1e-200  # a variance of a direction that is none


class WindowMap(Causal):
    """Series x [R, T, 2 D] (values, whether observed) -> [R, T, H * D], linear in the last L values of all D.

    `weight` [H * D, L, D] holds the oldest lag first. Before it is fitted the forecast is the last value. A series
    starts with the first step at which one of the D was observed; the others are 0 until they are. Before it y is 0.
    """

    def __init__(self, d_step: int, horizon: int, length: int) -> None:
        super().__init__()
        self.d_in, self.d_out = 2 * d_step, horizon * d_step
        self.d_step, self.horizon, self.length = d_step, horizon, length
        last = torch.zeros(horizon, d_step, length, d_step)
        last[:, :, -1].diagonal(dim1=1, dim2=2).fill_(1)
        self.weight, self.bias = nn.Parameter(last.flatten(0, 1)), nn.Parameter(torch.zeros(self.d_out))

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        (R, T), D, n = x.shape[:2], self.d_step, max(self.length - 1, 1)
        y, seen = x[..., :D], x[..., D:] > 0.5  # [R, T, D]
        before, started = nothing_held(x.new_empty(R * D), n) if state is None else join_rows(state), seen.any(2)
        begins = (before.clock.view(R, D)[:, :1] == 0) & (started.cumsum(1) == 1) & started  # [R, T]
        z, known = (each.mT.flatten(0, 1) for each in (torch.where(seen, y, 0), seen | begins[..., None]))  # [R * D, T]
        line, clock = hold(z, known, before)  # [R * D, n + T], [R * D, T]
        y = convolve(self._whole(line, clock), self.weight, self.bias, 1)  # [R, T, H * D]
        y = torch.where((clock.view(R, D, T)[:, 0] > 0)[..., None], y, 0)
        return y, split_rows(held_after(line, clock, n), D)

    def _whole(self, line: Tensor, clock: Tensor) -> Tensor:
        """The values that windows are cut from [R, L - 1 + T, D], the first one before the start."""
        n, T = line.shape[1], clock.shape[1]
        age = torch.arange(n - 1, -1, -1, device=line.device)
        first = line.gather(1, (n - clock[:, -1:]).clamp(0, n - 1))  # [R * D, 1]
        line = torch.where(age < clock[:, -1:], line, first)
        return line[:, n - T - self.length + 1 :].unflatten(0, (-1, self.d_step)).mT

    def set_map(self, W: Array, b: Array) -> None:
        """Take weights W [H, D, L', D] of L' <= L lags, the oldest first, and b [H, D]."""
        with torch.no_grad():
            self.weight.zero_()
            self.weight[:, self.length - W.shape[2] :] = torch.from_numpy(W).flatten(0, 1)
            self.bias.copy_(torch.from_numpy(b).flatten())


class RidgeMap(WindowMap):
    """A window map that is fitted by ridge regression, with the best of some lengths and in the best of some forms."""

    def __init__(self, d_step: int, horizon: int, lengths: Sequence[int], forms: Sequence[str]) -> None:
        super().__init__(d_step, horizon, max(lengths))
        self.lengths, self.forms = lengths, forms

    def solve(self, spans: Sequence[Span], held_out: Sequence[Span] = ()) -> dict[str, Any]:
        """Fit to all whole windows of the spans; what was chosen."""
        data, H = [held(span) for span in spans], self.horizon
        most = longest([len(z) for z in data], self.length, H)
        found, known, judged = [], None, None
        for L in sorted({min(length, most) for length in self.lengths}, reverse=True):
            known, judged = (
                _windows(data, L, H, known),
                _windows([_reaching(span, L) for span in held_out], L, H, judged),
            )
            assert known is not None
            found += [_best(form, _features(form, L, H), known, judged) for form in self.forms]
        best = min(found, key=lambda fit: fit.miss)
        self.set_map(best.W, best.b)
        L = best.W.shape[2]
        chosen: dict[str, Any] = {"form": best.form} if len(self.forms) > 1 else {}
        return chosen | {"ridge": best.strength} | ({"length": L} if self.length > L else {})


def held(span: Span) -> Array:
    """The values of a series from its start on [T', D], missing ones held."""
    begin = int(np.argmax(span.seen.any(1))) if span.seen.any() else len(span.y)
    y, seen = span.y[begin:], span.seen[begin:].copy()
    if seen.all():
        return y
    seen[:1] = True
    rows = torch.from_numpy(y.T.copy())
    line, _ = hold(rows, torch.from_numpy(seen.T.copy()), nothing_held(rows, 1))
    found: Array = line[:, 1:].T.numpy()
    return found


def longest(lengths: Sequence[int], most: int, horizon: int) -> int:
    """How many values may be read: as many as there are whole windows, `most` at most."""

    def windows(L: int) -> int:
        return sum(max(0, T - L - horizon + 1) for T in lengths)

    if not windows(1):
        raise DataError(
            f"no training series is long enough for a horizon of {horizon}: the longest has {max(lengths, default=0)} "
            f"steps and at least {horizon + 1} are needed; shorten the horizon or give longer series"
        )
    low, high = 1, most  # windows(L) falls as L rises
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if windows(middle) >= middle else (low, middle - 1)
    return low


def _reaching(span: Span, L: int) -> Array:
    """Held-out values with the L before them, the first one repeated where there are fewer."""
    z, gone = held(span), len(span.y)
    first = max(span.first - (gone - len(z)), 0)
    return np.concatenate([np.repeat(z[:1], max(L - first, 0), axis=0), z[max(first - L, 0) :]])


class Windows(NamedTuple):
    """Means and covariances of windows of S points."""

    N: int
    mean: Array  # [S, D]
    C: Array  # [S, D, S, D]


def _windows(data: Sequence[Array], L: int, H: int, longer: Windows | None = None) -> Windows | None:
    """Of the ends of `longer` ones, where these are nearly all."""
    data = [z for z in data if len(z) >= L + H]
    if not data:
        return None
    n = sum(len(z) - L - H + 1 for z in data)
    if longer is not None and longer.N / n >= NEARLY:
        return Windows(longer.N, longer.mean[-L - H :], longer.C[-L - H :, :, -L - H :])
    N, sums, products, offset = moments(data, L + H)
    mean = sums / N
    return Windows(N, mean + offset, products / N - mean[:, :, None, None] * mean)


class Features(NamedTuple):
    """f = F x, and what is added to V f, A x."""

    F: Array  # [P, L]
    A: Array  # [H, L]


def _features(form: str, L: int, H: int) -> Features:
    one, last, nothing = np.eye(L), np.eye(L)[-1], np.zeros((H, L))
    if form == "n-linear":
        return Features(one[:-1] - last, nothing + last)
    if form == "d-linear":
        near = np.clip(np.arange(L)[:, None] + np.arange(AVERAGED) - AVERAGED // 2, 0, L - 1)
        average = one[near].mean(1)  # [L, L]
        return Features(np.concatenate([average, one - average]), nothing)
    return Features(one, nothing)


class Fit(NamedTuple):
    """Weights on the window, and how they were chosen."""

    form: str
    strength: float
    miss: float
    W: Array  # [H, D, L, D]
    b: Array  # [H, D]


def _best(form: str, features: Features, windows: Windows, others: Windows | None) -> Fit:
    """The weights of the best strength."""
    F, A = features
    (P, H), D = (len(F), len(A)), windows.mean.shape[1]
    G = np.block([[F, np.zeros((P, H))], [-A, np.eye(H)]])  # [P + H, S]: features, and targets less what is added
    known = _transformed(windows, G, P)
    judged = None if others is None else _transformed(others, G, P)
    size, V = np.linalg.eigh(known.ff)
    size, along = np.maximum(size, 0.0), V.T @ known.fy  # [P D], [P D, H D]
    found: list[tuple[float, float, Array]] = []
    for strength in STRENGTHS:
        shrunk = size + strength * size.sum() / max(len(size), 1)
        v = V @ np.divide(along, shrunk[:, None], out=np.zeros_like(along), where=shrunk[:, None] > TINY)  # [P D, H D]
        if judged is None:
            p = 1 + float(np.divide(size, shrunk, out=np.zeros_like(size), where=shrunk > TINY).sum())
            miss = float(_squares(v, known).mean()) / (1 - p / known.N) ** 2 if p < known.N else float("inf")
        else:
            shift = judged.y - known.y - v.T @ (judged.f - known.f)
            miss = float((_squares(v, judged) + shift**2).mean())
        found.append((miss, strength, v))
    miss, strength, v = min(found, key=lambda each: each[0])
    W = np.einsum("pdhe,pl->held", v.reshape(P, D, H, D), F, optimize=True)
    W += A[:, None, :, None] * np.eye(D)[:, None]  # [H, D, L, D]
    return Fit(form, strength, miss, W, (known.y - v.T @ known.f).reshape(H, D))


class Transformed(NamedTuple):
    """Means and covariances of features f and of the targets y that V f is to give."""

    N: int
    f: Array  # [P D]
    y: Array  # [H D]
    ff: Array  # [P D, P D]
    fy: Array  # [P D, H D]
    yy: Array  # [H D] variances


def _transformed(windows: Windows, G: Array, P: int) -> Transformed:
    """The same of G z, for windows z; the first P rows of G are features."""
    (N, mean, C), D = windows, windows.mean.shape[1]
    C = np.tensordot(np.tensordot(G, C, (1, 0)), G, (2, 1)).transpose(0, 1, 3, 2)  # [P + H, D, P + H, D]
    C, mean, n = C.reshape(len(G) * D, -1), (G @ mean).reshape(-1), P * D
    return Transformed(N, mean[:n], mean[n:], C[:n, :n], C[:n, n:], np.diag(C)[n:])


def _squares(v: Array, of: Transformed) -> Array:
    """The variance [H D] of y - V f."""
    found: Array = of.yy - 2 * (v * of.fy).sum(0) + (v * (of.ff @ v)).sum(0)
    return found
