"""Autoregression: a linear function of the last s inputs, found by descent or, in closed form, by least squares.

    y_t = sum_{tau < s} W_tau x_{t-tau} + b

`solve` minimises sum_t |x_{t+ahead} - y_t|^2 over the rows of the lagged matrix ("seq2col"), whose row t is the window
(x_{t-s+1}, ..., x_t, 1); only whole windows count, and none crosses from one series to the next. That matrix is s times
as large as the data and is never built. There are two ways to the same weights:

- Normal equations. Windows overlap, so their moments sum_t x_{t-tau} x_{t-rho}^T depend, but for the two ends of a
  series, on tau - rho alone: s products over the data and corrections at the ends give all s^2, exactly.
- The lagged matrix in pieces, each merged by QR into a triangle of at most its width, and the solution of minimum norm
  by the singular values of that triangle.

The first is many times faster but squares the condition number of the system. So it is taken for lagged matrices of
more than `SMALL` numbers whose normal equations (centred, columns scaled to 1) have a condition number of at most
`CONDITION`; everything else, singular systems among it, goes the second way.

Yule 1927; Wang 2024, CS 577 lecture 11.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unrolled.core.errors import DataError
from unrolled.layers.conv.conv import CausalConv

SMALL = 1 << 18  # numbers of a lagged matrix that is solved as it is
CONDITION = 1e6  # of the normal equations: what they lose is about this times 1e-16
PIECE = 1 << 16  # numbers worked on at once

Array = NDArray[np.float64]
Series = Tensor | NDArray[Any] | Sequence[Tensor] | Sequence[NDArray[Any]]
"""[B, T, D], or any number of [T, D] of different lengths"""


class Autoregression(CausalConv):
    """y_t = sum_{tau < s} W_tau x_{t-tau} + b, with x = 0 before the start: a causal convolution that can be solved.

    `weight` [d_out, s, d_in] holds the oldest lag first, W_{s-1} .. W_0.
    """

    receptive_field_tight = True  # also before it is solved
    bias: nn.Parameter

    def __init__(self, d_in: int, d_out: int, order: int) -> None:
        super().__init__(d_in, d_out, kernel=order)
        self.order = order

    def solve(self, series: Series, targets: Series | None = None, ahead: int = 1) -> None:
        """The weights that predict `targets` (default: the series itself), `ahead` steps on, best in the mean square.

        Where several are equally good they are those of the smallest norm.
        """
        data = _rows(series, self.d_in, "the series")
        if targets is not None:
            z = [*zip(data, _rows(targets, self.d_out, "the targets"), strict=True)]
            data = [np.concatenate([x, y], axis=1) for x, y in z]  # [T, D + D']
        elif self.d_in != self.d_out:
            raise DataError(f"the series has width {self.d_in} but the model has {self.d_out} outputs: give targets")
        W, b = least_squares(data, self.d_in, slice(-self.d_out, None), self.order, ahead)
        with torch.no_grad():
            self.weight.copy_(torch.from_numpy(W.transpose(2, 0, 1).copy()))
            self.bias.copy_(torch.from_numpy(b))


def _rows(series: Series, width: int, what: str) -> list[NDArray[Any]]:
    """Separate series [T, D], in whatever type they come."""
    found = []
    for number, row in enumerate(series):
        x = row.detach().cpu().numpy() if isinstance(row, Tensor) else np.asarray(row)
        x = x[:, None] if x.ndim == 1 else x
        if x.ndim != 2 or x.shape[1] != width:
            raise DataError(f"{what}, number {number}: found shape {list(x.shape)}, expected [time, {width}]")
        found.append(x)
    return found


def least_squares(
    data: Sequence[NDArray[Any]],
    d_in: int,
    target: slice,
    order: int,
    ahead: int = 1,
    ridge: float = 0.0,
    rounding: float = 0.0,
) -> tuple[Array, Array]:
    """W [s, D, D'], the oldest lag first, and b [D'], for the columns `target` of data [T, D + ...], `ahead` steps on.

    The inputs are the first `d_in` columns. To the mean square error `ridge` v |W|^2 is added, v the mean variance of
    an input. `rounding`: the part of the inputs that is rounding; what varies by less is taken for no variation.
    """
    S = order + ahead  # a window holds s inputs and, `ahead` steps behind the newest, the target
    data = [z for z in data if len(z) >= S]
    N = sum(len(z) - S + 1 for z in data)
    if N == 0:
        raise DataError(f"no series is long enough: order {order} and {ahead} ahead need at least {S} points")
    P = order * d_in + 1
    solution = None
    if N * P > SMALL:
        solution = _by_normal_equations(moments(data, S), d_in, target, order, ridge)
    if solution is None:
        solution = _by_pieces(data, d_in, target, order, ahead, ridge, rounding)
    return solution[:-1].reshape(order, d_in, -1), solution[-1]


def _check_finite(data: Sequence[NDArray[Any]]) -> None:
    for number, z in enumerate(data):
        if not np.isfinite(z).all():
            raise DataError(f"series {number}: a value, or the sum of all values, is not finite; remove that series")


class Moments(NamedTuple):
    """What least squares needs to know of all N windows (z_{t-S+1} .. z_t) of some series, the oldest point first."""

    N: int
    sums: Array  # [S, D] of the points less `offset`
    products: Array  # [S, D, S, D]
    offset: Array  # [D] the mean of all points, taken off first so that nothing cancels


def moments(data: Sequence[NDArray[Any]], S: int) -> Moments:
    """Exact moments of all windows of S points, from S products over the data.

    With R_lag = sum_t z_t z_{t-lag}^T over the newest points t = S-1 .. T-1 of the windows, and tau, rho counted back
    from there,

        M[0, lag] = R_lag,   M[tau+1, rho+1] = M[tau, rho] + z_{S-2-tau} z_{S-2-rho}^T - z_{T-1-tau} z_{T-1-rho}^T
    """
    D = data[0].shape[1]
    totals = [z.sum(axis=0, dtype=np.float64) for z in data]
    _check_finite(totals)
    offset = sum(totals) / sum(map(len, data))
    same, earlier, total = np.zeros((S * D, S * D)), np.zeros((S * D, S * D)), np.zeros(D)
    heads, tails = (np.empty((len(data), S - 1, D)) for _ in range(2))  # z_{S-2-tau} and z_{T-1-tau} of every series
    for i, z in enumerate(data):
        for points in _stretches(z, S, offset):
            now, before = points[1:], points[:-1]  # [K, S * D]
            same += now.T @ now
            earlier += now.T @ before
            total += now.reshape(-1, D).sum(axis=0)
        heads[i], tails[i] = (np.asarray(end, np.float64) - offset for end in (z[S - 2 :: -1], z[:-S:-1]))
    R = _lag_products(same.reshape(S, D, S, D), earlier.reshape(S, D, S, D))
    edges = np.einsum("btd,bre->tdre", heads, heads, optimize=True)
    edges -= np.einsum("btd,bre->tdre", tails, tails, optimize=True)  # [S - 1, D, S - 1, D]
    M = np.empty((S, D, S, D))
    M[0], M[:, :, 0] = R.transpose(1, 0, 2), R.transpose(0, 2, 1)
    for tau in range(S - 1):
        M[tau + 1, :, tau + 1 :] = M[tau, :, tau:-1] + edges[tau, :, tau:]
        M[tau + 1 :, :, tau + 1] = M[tau:-1, :, tau] + edges[tau:, :, tau]
    sums = total + np.concatenate([np.zeros((1, D)), (heads - tails).sum(axis=0).cumsum(axis=0)])  # [S, D]
    N = sum(len(z) - S + 1 for z in data)
    return Moments(N, sums[::-1], M[::-1, :, ::-1], offset)


def _stretches(z: NDArray[Any], S: int, offset: Array) -> Iterator[Array]:
    """The newest points of the windows in stretches of S, each piece [1 + K, S * D] after the stretch before it.

    Zeros stand before the start and behind the end, where as newest points they add nothing.
    """
    D = z.shape[1]
    n = S * max(1, PIECE // (S * D))
    for begin in range(S - 1, len(z), n):
        K = -(-min(n, len(z) - begin) // S)
        points = np.zeros(((1 + K) * S, D))
        part = z[max(begin - S, 0) : begin + n]
        missing = max(S - begin, 0)
        np.subtract(part, offset, out=points[missing : missing + len(part)], dtype=np.float64)
        yield points.reshape(1 + K, S * D)


def _lag_products(same: Array, earlier: Array) -> Array:
    """R_lag [S, D, D] from products [S, D, S, D] of the points of a stretch with itself and with the one before.

    A point at place i of its stretch meets those at places j <= i of the same one at lag i - j, and those at places
    j > i of the one before at lag i - j + S.
    """
    S, D = same.shape[:2]
    R = np.empty((S, D, D))
    for lag in range(S):
        R[lag] = np.einsum("idie->de", same[lag:, :, : S - lag])
        if lag:
            R[lag] += np.einsum("idie->de", earlier[:lag, :, S - lag :])
    return R


def _by_normal_equations(found: Moments, d_in: int, target: slice, order: int, ridge: float = 0.0) -> Array | None:
    """[s * D + 1, D'] from the centred moments, or None where their condition number is beyond CONDITION."""
    N, sums, products, offset = found
    mean = sums / N  # [S, D]
    C = products / N - mean[:, :, None, None] * mean  # [S, D, S, D]
    P = order * d_in
    A = C[:order, :d_in, :order, :d_in].reshape(P, P)
    c = C[:order, :d_in, -1, target].reshape(P, -1)
    A = A + ridge * np.trace(A) / P * np.eye(P)
    scale = np.sqrt(np.maximum(np.diag(A), 0.0))
    if not scale.min() > 1e-8 * scale.max():
        return None
    A = A / scale / scale[:, None]
    size, directions = np.linalg.eigh(A)
    if not size[0] * CONDITION > size[-1]:
        return None
    w = directions @ ((directions.T @ (c / scale[:, None])) / size[:, None]) / scale[:, None]
    inputs = (mean[:order, :d_in] + offset[:d_in]).reshape(P)
    b = mean[-1, target] + offset[target] - inputs @ w
    return np.concatenate([w, b[None]])


def _by_pieces(
    data: Sequence[NDArray[Any]], d_in: int, target: slice, order: int, ahead: int, ridge: float, rounding: float
) -> Array:
    """[s * D + 1, D'] of minimum norm, from rows (window, 1, target) merged by QR into a triangle; a ridge is P - 1
    more of them."""
    P, N = order * d_in + 1, 0
    triangle: NDArray[Any] = np.empty((0, P + 1))
    for rows in _lagged(data, d_in, target, order, ahead):
        both = np.concatenate([triangle, rows]) if N else rows
        triangle = np.asarray(np.linalg.qr(both, mode="r"))
        N += len(rows)
    if ridge:
        products = triangle[:, :P].T @ triangle[:, :P]  # the last of them with the column of ones
        v = np.maximum(np.diag(products) / N - (products[-1] / N) ** 2, 0.0)[:-1].mean()
        triangle = np.concatenate([triangle, np.sqrt(ridge * v * N) * np.eye(P - 1, triangle.shape[1])])
    # of singular values that count as zero: as numpy.linalg.lstsq, or what rounding of the inputs can make
    tolerance = max(np.finfo(np.float64).eps * max(N, P), rounding)
    solution: Array = np.linalg.lstsq(triangle[:, :P], triangle[:, P:], rcond=tolerance)[0]
    return solution


def _lagged(data: Sequence[NDArray[Any]], d_in: int, target: slice, order: int, ahead: int) -> Iterator[Array]:
    """The lagged matrix with its targets, some rows at a time: [n, s * D + 1 + D']."""
    P = order * d_in + 1
    n = max(P, PIECE // P)
    _check_finite(data)
    for z in data:
        for begin in range(order, len(z) - ahead + 1, n):  # behind the newest point of the first window
            end = min(begin + n, len(z) - ahead + 1)
            inputs = np.asarray(z[begin - order : end - 1, :d_in], np.float64)
            windows = np.lib.stride_tricks.sliding_window_view(inputs, order, axis=0)  # [n, D, s]
            y = np.asarray(z[begin - 1 + ahead : end - 1 + ahead, target], np.float64)
            flat = windows.transpose(0, 2, 1).reshape(end - begin, P - 1)
            yield np.concatenate([flat, np.ones((end - begin, 1)), y], axis=1)
