"""DEER: the loop's numbers to the last digits, its iterations reported, and failure that nobody can overlook."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.thorough import every
from unrolled.core.errors import UnrolledError, UsageError
from unrolled.core.trace import trace
from unrolled.layers.recurrent import deer
from unrolled.layers.recurrent.cells import GRU, LSTM, Cell, Elman, LinearUnit
from unrolled.layers.recurrent.fused import fused
from unrolled.layers.recurrent.linear_scan import linear_scan, reverse_scan
from unrolled.layers.recurrent.scan import Scan, loop, trajectory


def relative(a: Tensor, b: Tensor) -> float:
    return float(((a - b).abs().max() / b.abs().max().clamp(min=1e-12)).detach())


def run(scan: Scan, cell: Cell, x: Tensor) -> list[Tensor]:
    x = x.clone().requires_grad_()
    h0 = torch.linspace(-1, 1, cell.state_size, dtype=x.dtype).repeat(len(x), 1).requires_grad_()
    y, last = scan(cell, x, h0)
    loss = (y * torch.arange(y.numel(), dtype=y.dtype).view_as(y).sin()).sum() + last.sum()
    return [y, last, *torch.autograd.grad(loss, [x, h0, *cell.parameters()], allow_unused=True, materialize_grads=True)]


def agree(scan: Scan, cell: Cell, x: Tensor, bound: float, reference: Scan = loop) -> None:
    for ours, theirs in zip(run(scan, cell, x), run(reference, cell, x), strict=True):
        assert relative(ours, theirs) < bound


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-5), (torch.float64, 1e-9)])
@pytest.mark.parametrize("T", every(2, [2, 1, 37, 1000]))
def test_equals_the_loop(make_cell: Callable[[int], Cell], dtype: torch.dtype, bound: float, T: int) -> None:
    n = 32 if T < 1000 else 8
    reference = loop if T < 1000 else fused  # itself tested against the loop, and faster
    agree(deer.deer, make_cell(n).to(dtype), torch.randn(1, T, 3, dtype=dtype), bound, reference)


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-5), (torch.float64, 1e-9)])
@pytest.mark.parametrize("make", [lambda: Elman(3, 32), lambda: GRU(3, 12), lambda: LSTM(3, 6)])
def test_equals_the_loop_over_4096_steps(make: Callable[[], Cell], dtype: torch.dtype, bound: float) -> None:
    torch.manual_seed(1)
    agree(deer.deer, make().to(dtype), torch.randn(1, 4096, 3, dtype=dtype), bound, reference=fused)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-5), (torch.float64, 1e-9)])
def test_the_diagonal_variant_equals_the_loop(
    make_cell: Callable[[int], Cell], dtype: torch.dtype, bound: float
) -> None:  # fmt: skip
    agree(deer.scan(jacobian="diagonal"), make_cell(8).to(dtype), torch.randn(1, 200, 3, dtype=dtype), bound)


def test_it_is_parallel_and_says_how_much() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 1000, 3).double()
    solution = deer.solve(GRU(3, 8).double(), x, torch.zeros(2, 8).double())
    assert solution.converged
    assert 2 <= solution.iterations <= 8
    assert solution.residual < 1e-12
    assert solution.depth == solution.iterations * 20  # 2 log2(1000), rounded up, per scan
    linear = deer.solve(LinearUnit(3, 8).double(), x, torch.zeros(2, 8).double())
    assert linear.iterations == 1  # Newton on a linear recurrence is exact at once


@pytest.mark.parametrize("T", [1, 2, 3, 4, 7, 16, 33])
@pytest.mark.parametrize("shape", [(5, 5), (5,)], ids=["full", "diagonal"])
def test_the_scan_solves_the_linear_recurrence_both_ways(T: int, shape: tuple[int, ...]) -> None:
    J, b = torch.randn(2, T, *shape).double(), torch.randn(2, T, 5).double()
    full = J if len(shape) == 2 else J.diag_embed()
    s, back = torch.zeros(2, 5).double(), torch.zeros(2, 5).double()
    ahead, behind = linear_scan(J, b), reverse_scan(J, b)
    for t in range(T):
        s = torch.einsum("bij,bj->bi", full[:, t], s) + b[:, t]
        torch.testing.assert_close(ahead[:, t], s)
    for t in reversed(range(T)):
        carried = torch.einsum("bji,bj->bi", full[:, t + 1], back) if t + 1 < T else 0
        back = carried + b[:, t]
        torch.testing.assert_close(behind[:, t], back)


@pytest.mark.parametrize("jacobian", ["full", "diagonal"])
def test_windows_of_time_change_nothing(jacobian: deer.JacobianKind) -> None:
    cell = GRU(3, 6).double()

    def in_windows(cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
        states = deer.solve(cell, x, h0, jacobian=jacobian, window=7).states
        return states, states[:, -1]

    agree(in_windows, cell, torch.randn(2, 40, 3).double(), 1e-9)


def chaotic() -> Elman:
    torch.manual_seed(3)
    cell = Elman(3, 16).double()
    with torch.no_grad():
        cell.weight_hh *= 20
    return cell


@pytest.mark.parametrize("jacobian", ["full", "diagonal"])
def test_a_chaotic_cell_fails_visibly(jacobian: deer.JacobianKind) -> None:
    cell, x, h0 = chaotic(), torch.randn(1, 1000, 3).double(), torch.zeros(1, 16).double()
    solution = deer.solve(cell, x, h0, jacobian=jacobian, max_iterations=20)
    assert not solution.converged
    assert solution.residual > 1e-3
    assert not solution.states.requires_grad
    with pytest.raises(
        deer.NotConverged, match=r"Elman over 1000 steps in row 0: residual .* after 20 iterations; use"
    ) as error:
        deer.scan(jacobian=jacobian, max_iterations=20)(cell, x, h0)
    assert isinstance(error.value, UnrolledError)


def test_an_exploding_cell_fails_visibly() -> None:
    cell = LinearUnit(3, 4).double()
    with torch.no_grad():
        cell.weight_hh.copy_(100 * torch.eye(4))
    solution = deer.solve(cell, torch.randn(1, 400, 3).double(), torch.ones(1, 4).double())
    assert not solution.converged
    with pytest.raises(deer.NotConverged):
        deer.deer(cell, torch.randn(1, 400, 3).double(), torch.ones(1, 4).double())


def test_states_after_a_failed_window_are_not_invented() -> None:
    x = torch.randn(1, 300, 3).double()
    solution = deer.solve(chaotic(), x, torch.zeros(1, 16).double(), window=150, max_iterations=5)
    assert not solution.converged
    assert solution.states.shape == (1, 300, 16)
    assert solution.states[:, 150:].isnan().all()


def test_the_fallback_is_taken_with_one_warning() -> None:
    cell, x, h0 = chaotic(), torch.randn(1, 400, 3).double(), torch.zeros(1, 16).double()
    careful = deer.scan(max_iterations=5, fallback=loop)
    with pytest.warns(RuntimeWarning, match="DEER did not converge for Elman over 400 steps.*using the fallback scan"):
        y, last = careful(cell, x, h0)
    torch.testing.assert_close((y, last), loop(cell, x, h0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        careful(cell, x, h0)


def test_damping_rescues_what_plain_newton_overshoots() -> None:
    torch.manual_seed(0)
    cell = Elman(3, 16).double()
    with torch.no_grad():
        cell.weight_hh *= 2.0  # much more, and it depends on the last digits whether it converges
    x, h0 = 0.1 * torch.randn(1, 200, 3).double(), torch.zeros(1, 16).double()
    solution = deer.solve(cell, x, h0)
    assert solution.converged
    assert solution.depth > solution.iterations * deer.rounds(200)  # some were tried again with a damped Jacobian
    torch.testing.assert_close(solution.states, trajectory(cell, x, h0), rtol=1e-9, atol=1e-9)


def test_whoever_traces_sees_the_solution() -> None:
    with trace() as seen:
        deer.deer(GRU(3, 4), torch.randn(1, 20, 3), torch.zeros(1, 4))
    (solution,) = seen["deer"]
    assert solution.converged


def test_a_wrong_word_is_answered() -> None:
    with pytest.raises(UsageError, match="'full' or 'diagonal'"):
        deer.solve(GRU(3, 4), torch.randn(1, 5, 3), torch.zeros(1, 4), jacobian="diag")  # type: ignore[arg-type]


@pytest.mark.parametrize("jacobian", ["full", "diagonal"])
def test_a_large_row_does_not_make_another_converge(jacobian: deer.JacobianKind) -> None:
    """The residual of a row is relative to its own states: beside one of 1e4, errors of 1e-3 are errors."""
    torch.manual_seed(0)
    cell = Elman(2, 3, "relu").double()
    x = torch.randn(3, 60, 2).double()
    x[1] *= 1e6
    states = deer.solve(cell, x, torch.zeros(3, 3).double(), jacobian=jacobian, tolerance=1e-9).states
    for row in (0, 2):
        torch.testing.assert_close(states[row], trajectory(cell, x, torch.zeros(3, 3).double())[row], rtol=0, atol=1e-8)


@pytest.mark.parametrize("window", [None, 10])
def test_rows_that_fail_are_named_and_the_others_solved(window: int | None) -> None:
    torch.manual_seed(0)
    cell, h0 = GRU(2, 3).double(), torch.zeros(4, 3).double()
    x = torch.randn(4, 30, 2).double()
    x[1, 5], x[3, 0] = float("nan"), float("inf")
    solution = deer.solve(cell, x, h0, window=window)
    assert not solution.converged
    assert solution.failed == (1, 3)
    wanted = trajectory(cell, x, h0)
    torch.testing.assert_close(solution.states[[0, 2]], wanted[[0, 2]], rtol=0, atol=1e-9)
    with pytest.raises(deer.NotConverged, match=r"over 30 steps in rows 1 and 3: "):
        deer.deer(cell, x, h0)


def test_gradients_of_a_small_row_beside_a_large_one() -> None:
    """The diagonal variant refines the adjoint of every row relative to that row's own."""
    torch.manual_seed(0)
    cell = Elman(2, 3).double()
    results = []
    for run in (deer.scan(jacobian="diagonal", tolerance=1e-6), loop):
        x = torch.randn(2, 40, 2, generator=torch.Generator().manual_seed(1)).double().requires_grad_()
        y, _ = run(cell, x, torch.zeros(2, 3).double())
        ((y[0].sum() * 1e9) + y[1].sum()).backward()
        results.append(x.grad)
    assert results[0] is not None
    torch.testing.assert_close(results[0][1], results[1][1], rtol=0, atol=1e-5)
