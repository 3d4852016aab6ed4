"""Autoregression: its equation, its closed form against the lagged matrix, and what cannot be solved."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from unrolled.core.errors import DataError
from unrolled.layers.counting import autoregression
from unrolled.layers.counting.autoregression import Autoregression, moments
from unrolled.layers.parts.filter import Filter
from unrolled.layers.recurrent.cells import LinearUnit
from unrolled.layers.recurrent.recurrent import Recurrent

FIBONACCI = [1, 1, 2, 3, 5, 8, 13, 21, 34, 55]


def seq2col(
    series: list[NDArray[np.float64]], targets: list[NDArray[np.float64]], order: int, ahead: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lagged matrix with its column of ones, and the targets, window by window."""
    X, y = [], []
    for x, u in zip(series, targets):
        for t in range(order - 1, len(x) - ahead):
            X.append(np.append(x[t - order + 1 : t + 1].ravel(), 1.0))
            y.append(u[t + ahead])
    return np.array(X), np.array(y)


def solved(layer: Autoregression) -> NDArray[np.float64]:
    """(W_{s-1} .. W_0, b) as the columns of one matrix [s * D + 1, D']."""
    W = layer.weight.detach().permute(1, 2, 0).reshape(-1, layer.d_out)
    return torch.cat([W, layer.bias.detach()[None]]).numpy()


def test_every_output_is_the_sum_over_lags() -> None:
    layer, x = Autoregression(2, 3, order=4).double(), torch.randn(2, 9, 2).double()
    torch.nn.init.normal_(layer.bias)
    y, _ = layer(x)
    for t in range(9):
        wanted = layer.bias.expand(2, 3)
        for tau in range(min(4, t + 1)):
            wanted = wanted + x[:, t - tau] @ layer.weight[:, 3 - tau].T
        torch.testing.assert_close(y[:, t], wanted)


def test_fibonacci_is_the_solution_of_minimum_norm() -> None:
    """The lagged matrix is singular, for x_t = x_{t-1} + x_{t-2}; (w_2, w_1, w_0, b) = (0, 1, 1, 0)."""
    layer = Autoregression(1, 1, order=3).double()
    layer.solve([np.array(FIBONACCI)])
    np.testing.assert_allclose(solved(layer)[:, 0], [0, 1, 1, 0], atol=1e-12)
    x = torch.tensor(FIBONACCI).double().view(1, -1, 1)
    assert round(layer(x)[0][0, -1].item()) == 89


def test_a_linear_unit_with_a_shift_matrix_is_the_solved_model() -> None:
    s, x = 4, torch.randn(1, 60, 1).double()
    layer, cell = Autoregression(1, 1, order=s).double(), LinearUnit(1, s).double()
    layer.solve(x)
    with torch.no_grad():
        cell.weight_hh.copy_(torch.diag(torch.ones(s - 1), -1))
        cell.weight_ih.copy_(torch.eye(s)[:, :1])
        y = Recurrent(cell)(x)[0] @ layer.weight[0].flip(0) + layer.bias  # h = (x_t, x_{t-1}, ...)
    torch.testing.assert_close(y, layer(x)[0])


@pytest.mark.parametrize("way", ["normal equations", "pieces"])
@pytest.mark.parametrize(
    ("d_in", "d_out", "order", "ahead", "lengths"),
    [(1, 1, 5, 1, [80]), (1, 1, 1, 2, [30, 20]), (3, 3, 2, 1, [60, 2, 3, 90]), (2, 1, 4, 3, [400, 6, 7, 8, 50])],
)
def test_it_equals_least_squares_on_the_lagged_matrix(
    way: str, d_in: int, d_out: int, order: int, ahead: int, lengths: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In both ways, in pieces smaller than the series, with windows that never cross from one series to the next."""
    monkeypatch.setattr(autoregression, "SMALL", 0 if way == "normal equations" else 1 << 30)
    monkeypatch.setattr(autoregression, "PIECE", 64)
    random = np.random.default_rng(0)
    series = [7 + 3 * random.standard_normal((n, d_in)) for n in lengths]
    targets = series if d_in == d_out else [random.standard_normal((n, d_out)) for n in lengths]
    layer = Autoregression(d_in, d_out, order).double()
    layer.solve(series, None if targets is series else targets, ahead=ahead)
    X, y = seq2col(series, targets, order, ahead)
    np.testing.assert_allclose(solved(layer), np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-10)


def test_the_normal_equations_are_the_ones_that_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long well-conditioned series never touches the lagged matrix; an ill-conditioned one does not trust moments."""

    def forbidden(*_: object) -> None:
        raise AssertionError("the lagged matrix was built")

    random = np.random.default_rng(0)
    x = random.standard_normal((1, 40_000, 1))
    smooth = np.sin(np.arange(40_000) / 50)[None, :, None] + 1e-7 * x
    with monkeypatch.context() as patch:
        patch.setattr(autoregression, "_by_pieces", forbidden)
        layer = Autoregression(1, 1, order=8).double()
        layer.solve(x)
        with pytest.raises(AssertionError, match="lagged"):
            layer.solve(smooth)
    X, y = seq2col(list(x), list(x), 8, 1)
    np.testing.assert_allclose(solved(layer), np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-12)
    layer.solve(smooth)
    X, y = seq2col(list(smooth), list(smooth), 8, 1)
    np.testing.assert_allclose(solved(layer), np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-4)


def test_long_singular_systems_have_the_minimum_norm_too() -> None:
    """A constant column and a period of two: many weights fit, the smallest are taken."""
    x = np.stack([np.full(60_000, 5.0), np.arange(60_000) % 2], axis=1)
    layer = Autoregression(2, 2, order=3).double()
    layer.solve([x])
    X, y = seq2col([x], [x], 3, 1)
    np.testing.assert_allclose(solved(layer), np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-8)


def test_moments_are_those_of_the_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autoregression, "PIECE", 40)
    series = [np.random.default_rng(i).standard_normal((n, 2)) + i for i, n in enumerate((5, 4, 31, 90))]
    found = moments(series, 4)
    windows = np.concatenate([[z[t : t + 4] for t in range(len(z) - 3)] for z in series]) - found.offset  # [N, S, D]
    assert len(windows) == found.N
    np.testing.assert_allclose(found.sums, windows.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.products, np.einsum("nsd,nre->sdre", windows, windows), atol=1e-11)


def test_rows_of_a_tensor_are_separate_series() -> None:
    x = torch.randn(3, 20, 2)
    together, apart = Autoregression(2, 2, 3), Autoregression(2, 2, 3)
    together.solve(x)
    apart.solve([row.numpy() for row in x])
    torch.testing.assert_close(together.weight, apart.weight)
    joined = Autoregression(2, 2, 3)
    joined.solve(x.reshape(1, 60, 2))
    assert not torch.allclose(together.weight, joined.weight)


def test_a_whole_file_on_disk_may_be_solved(tmp_path: object) -> None:
    x = np.memmap(f"{tmp_path}/x.bin", np.float32, mode="w+", shape=(50_000, 1))
    x[:] = np.random.default_rng(0).standard_normal((50_000, 1))
    x.flush()
    layer = Autoregression(1, 1, 8)
    layer.solve([np.memmap(f"{tmp_path}/x.bin", np.float32, mode="r", shape=(50_000, 1))])
    assert layer.weight.abs().max().item() < 0.05  # noise predicts nothing


@pytest.mark.parametrize(
    ("series", "says"),
    [
        ([np.ones((3, 2))], "long enough"),
        ([np.ones((30, 3))], "number 0: found shape \\[30, 3\\]"),
        ([np.ones((30, 2)), np.full((30, 2), np.nan)], "series 1"),
        ([np.ones((90_000, 2)), np.full((90_000, 2), np.inf)], "series 1"),
    ],
)
def test_what_cannot_be_solved_is_said(series: list[NDArray[np.float64]], says: str) -> None:
    with pytest.raises(DataError, match=says):
        Autoregression(2, 2, order=3).solve(series)


def test_other_widths_need_targets() -> None:
    with pytest.raises(DataError, match="give targets"):
        Autoregression(2, 3, order=3).solve([np.ones((30, 2))])


def test_descent_finds_what_is_solved() -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 400, 1).double()
    for t in range(2, 400):
        x[0, t] = 0.6 * x[0, t - 1] - 0.3 * x[0, t - 2] + 0.1 * x[0, t]
    solved_layer, layer = (Autoregression(1, 1, 2).double() for _ in range(2))
    solved_layer.solve(x)
    optimiser = torch.optim.LBFGS(
        layer.parameters(), max_iter=200, tolerance_grad=1e-12, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        error = (layer(x)[0][:, 1:-1] - x[:, 2:]).square().mean()
        error.backward()
        return error

    optimiser.step(loss)
    torch.testing.assert_close(layer.weight, solved_layer.weight, atol=1e-4, rtol=0)


@pytest.mark.parametrize(("order", "delay"), [(3, 0), (3, 2), (2, 5), (30, 1)])
def test_a_filter_is_where_the_mean_square_of_all_that_is_predicted_is_least(order: int, delay: int) -> None:
    """The gradient of the loss that descent would minimise is 0; series may be shorter than the order or the delay."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(6, 12, 2, generator=random, dtype=torch.float64)
    y = torch.randn(6, 12, 1, generator=random, dtype=torch.float64) + x.cumsum(1)[..., :1]
    mask = torch.arange(12) < torch.tensor([12, 12, 9, 4, 2, 1])[:, None]
    model = Filter(delay, Autoregression(2, 1, order).double())
    model.solve([(x[:4], mask[:4], y[:4]), (x[4:], mask[4:], y[4:])])
    error = (model(x, mask)[0] - y)[mask]
    error.square().sum().backward()
    for weight in model.parameters():
        assert float(weight.grad.abs().max()) < 1e-8
    assert float(error.detach().square().mean()) < float((y[mask] - y[mask].mean()).square().mean())
