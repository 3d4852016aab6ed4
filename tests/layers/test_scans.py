"""All scans of all cells give what the plain loop gives: outputs, states and gradients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from unrolled.kernels import unroll
from unrolled.layers.recurrent.cells import GRU, LSTM, BookGRU, Cell, Elman
from unrolled.layers.recurrent.deer import deer, scan
from unrolled.layers.recurrent.fused import KERNELS, fused
from unrolled.layers.recurrent.scan import Scan, loop, trajectory
from unrolled.testing import check_scan

SCANS: dict[str, Scan] = {"fused": fused, "deer": deer, "deer-diagonal": scan(jacobian="diagonal")}


def run(scan: Scan, cell: Cell, x: Tensor, h0: Tensor) -> list[Tensor]:
    """Outputs, the last state, and the gradients of a loss that weighs all of them differently."""
    x, h0 = x.clone().requires_grad_(), h0.clone().requires_grad_()
    y, last = scan(cell, x, h0)
    weights = torch.arange(y.numel(), dtype=y.dtype).view_as(y).sin()
    loss = (y * weights).sum() + (last * last).sum()
    gradients = torch.autograd.grad(loss, [x, h0, *cell.parameters()], allow_unused=True, materialize_grads=True)
    return [y, last, *gradients]


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("T", [1, 2, 23])
def test_agrees_with_the_loop(cell: Cell, name: str, T: int) -> None:
    x, h0 = torch.randn(2, T, 3).double(), torch.randn(2, 6).double()
    for ours, reference in zip(run(SCANS[name], cell, x, h0), run(loop, cell, x, h0), strict=True):
        torch.testing.assert_close(ours, reference, rtol=1e-9, atol=1e-11)


def test_fused_obeys_the_laws_of_a_scan(cell: Cell) -> None:
    check_scan(fused, cell)


@pytest.mark.parametrize("T", [1, 9])
def test_float32_and_no_gradients(make_cell: Callable[[int], Cell], T: int) -> None:
    cell, x, h0 = make_cell(6), torch.randn(2, T, 3), torch.randn(2, 6)
    with torch.no_grad():
        for ours, reference in zip(fused(cell, x, h0), loop(cell, x, h0), strict=True):
            torch.testing.assert_close(ours, reference, rtol=1e-5, atol=1e-6)


def test_gradients_in_pieces_of_time(monkeypatch: pytest.MonkeyPatch, cell: Cell) -> None:
    """The backward pass prepares a few ticks at once; where it cuts must not show."""
    x, h0 = torch.randn(2, 11, 3).double(), torch.randn(2, 6).double()
    whole = run(fused, cell, x, h0)
    for chunk in (1, 100):
        monkeypatch.setattr(unroll, "CHUNK", chunk)
        for a, b in zip(run(fused, cell, x, h0), whole, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-13)


def test_gradcheck(cell: Cell) -> None:
    torch.manual_seed(0)
    x, h0 = torch.randn(2, 4, 3).double().requires_grad_(), torch.randn(2, 6).double().requires_grad_()
    names, values = zip(*cell.named_parameters(), strict=True)

    def f(x: Tensor, h0: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
        return fused(Bound(cell, dict(zip(names, weights, strict=True))), x, h0)

    class Bound(type(cell)):  # type: ignore[misc]  # the cell with other weights, still of a class with a kernel
        def __init__(self, cell: Cell, weights: dict[str, Tensor]) -> None:
            self.__dict__ = dict(cell.__dict__)
            self._parameters = {}
            self._modules = dict(cell._modules)
            for name, weight in weights.items():
                if "." not in name:
                    self.__dict__[name] = weight

    KERNELS[Bound] = KERNELS.get(type(cell), loop)
    try:
        assert torch.autograd.gradcheck(f, (x, h0, *values), eps=1e-6, atol=1e-6)
    finally:
        del KERNELS[Bound]


def test_one_output_alone_may_be_used(cell: Cell) -> None:
    x, h0 = torch.randn(2, 5, 3).double(), torch.randn(2, 6).double().requires_grad_()
    for k in (0, 1):
        mine, reference = fused(cell, x, h0)[k].sum(), loop(cell, x, h0)[k].sum()
        if reference.requires_grad:
            a, b = (torch.autograd.grad(s, h0, allow_unused=True, materialize_grads=True)[0] for s in (mine, reference))
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", ["loop", "fused", "deer"])
def test_chunks_give_the_same_with_gradients(cell: Cell, name: str) -> None:
    scan = {"loop": loop, "fused": fused, "deer": deer}[name]

    def in_chunks(cell: Cell, x: Tensor, h0: Tensor) -> tuple[Tensor, Tensor]:
        ys = []
        for piece in x.split([1, 4, 2, 5], dim=1):
            y, h0 = scan(cell, piece, h0)
            ys.append(y)
        return torch.cat(ys, dim=1), h0

    x, h0 = torch.randn(2, 12, 3).double(), torch.randn(2, 6).double()
    for a, b in zip(run(in_chunks, cell, x, h0), run(scan, cell, x, h0), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("T", [1, 5])
def test_what_is_passed_in_is_never_modified(cell: Cell, T: int) -> None:
    x, h0 = torch.randn(1, T, 3).double(), torch.randn(1, 6).double()
    before = x.clone(), h0.clone()
    with torch.no_grad():
        _, state = fused(cell, x, h0)
        kept = state.clone()
        fused(cell, x, state)
    assert torch.equal(state, kept)
    run(fused, cell, x, h0)
    assert torch.equal(x, before[0])
    assert torch.equal(h0, before[1])


def test_the_trajectory_is_the_states(cell: Cell) -> None:
    x, h0 = torch.randn(2, 5, 3).double(), torch.randn(2, 6).double()
    states = trajectory(cell, x, h0)
    y, last = loop(cell, x, h0)
    assert torch.equal(states[:, -1], last)
    assert torch.equal(cell.output(states), y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(
    "cell", [LSTM(3, 4), LSTM(3, 4, d_proj=2), LSTM(3, 4, bias=False)], ids=["lstm", "proj", "plain"]
)
def test_a_tick_of_one_row_is_the_cell(cell: LSTM, dtype: torch.dtype) -> None:
    cell = cell.to(dtype)
    x, h = 3 * torch.randn(1, 1, 3).to(dtype), 100 * torch.randn(1, cell.state_size).to(dtype)
    with torch.no_grad():
        y, state = fused(cell, x, h)
        assert y.dtype == state.dtype == dtype
        torch.testing.assert_close(state / 100, cell(x[:, 0], h) / 100)  # states are of this size
        torch.testing.assert_close(y[:, 0], cell.output(state))
        with torch.inference_mode():
            torch.testing.assert_close(fused(cell, x, h)[1] / 100, state / 100)


def test_a_tick_sees_new_weights_at_once() -> None:
    cell, x, h = LSTM(3, 4), torch.randn(1, 1, 3), torch.randn(1, 8)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(fused(cell, x, h)[1], cell(x[:, 0], h))
            cell.weight_hh.mul_(2)
        cell.weight_ih = torch.nn.Parameter(torch.randn(16, 3))
        torch.testing.assert_close(fused(cell, x, h)[1], cell(x[:, 0], h))


def test_a_subclass_with_its_own_equation_does_not_get_the_kernel_of_its_parent() -> None:
    class Negative(GRU):
        def forward(self, x_t: Tensor, h: Tensor) -> Tensor:
            return -super().forward(x_t, h)

    cell, x, h0 = Negative(3, 4), torch.randn(2, 5, 3), torch.zeros(2, 4)
    torch.testing.assert_close(fused(cell, x, h0), loop(cell, x, h0))


def test_second_derivatives(make_cell: Callable[[int], Cell]) -> None:
    """A penalty on gradients, where h_0 and the weights are functions of each other."""
    cell = make_cell(6).double()
    found = []
    for run in (loop, fused):
        torch.manual_seed(0)
        x, scale = torch.randn(2, 5, 3).double().requires_grad_(), torch.ones(()).double().requires_grad_()
        y, last = run(cell, scale * x, scale * x.mean(1).repeat(1, 2))
        first = torch.autograd.grad((y**2).sum() + (last**3).sum(), [x, scale], create_graph=True)
        penalty = sum((g**2).sum() for g in first)
        second = torch.autograd.grad(penalty, [x, scale, *cell.parameters()], materialize_grads=True)
        found.append([*first, *second])
    torch.testing.assert_close(*found, rtol=1e-9, atol=1e-11)


def test_an_output_overwritten_before_the_backward_pass_is_an_error() -> None:
    cell, x = GRU(3, 4), torch.randn(2, 5, 3)
    y, _ = fused(cell, x, torch.zeros(2, 4))
    with pytest.raises(RuntimeError, match=r"in-?place"):
        y.mul_(2).sum().backward()


@pytest.mark.parametrize(
    "cell", [Elman(3, 4), GRU(3, 4), BookGRU(3, 4), LSTM(3, 2)], ids=["elman", "gru", "book", "lstm"]
)
def test_autocast_is_survived(cell: Cell) -> None:
    x = torch.randn(2, 5, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, _ = fused(cell, x.bfloat16(), torch.zeros(2, 4))
        y.float().sum().backward()
    assert next(cell.parameters()).grad is not None
    torch.testing.assert_close(y.float(), fused(cell, x, torch.zeros(2, 4))[0], rtol=0.05, atol=0.05)


def test_a_tick_of_one_row_agrees_for_every_cell(make_cell: Callable[[int], Cell]) -> None:
    for dtype in (torch.float32, torch.float64):
        cell = make_cell(6).to(dtype)
        x, h0 = torch.randn(1, 1, 3, dtype=dtype), torch.randn(1, 6, dtype=dtype)
        with torch.no_grad():
            y, state = fused(cell, x, h0)
            torch.testing.assert_close((y, state), loop(cell, x, h0))
            kept = state.clone()
            y.zero_()  # output and state do not share memory
            assert torch.equal(state, kept)
            torch.testing.assert_close(fused(cell, x.requires_grad_(), h0)[1], state)
            batched = torch.func.vmap(lambda x: fused(cell, x, h0)[1])(x.detach().expand(2, 1, 1, 3))
            torch.testing.assert_close(batched[1], state)
