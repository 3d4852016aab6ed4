"""Every kernel at every level that this machine has: what its reference gives, for sizes of all kinds."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.thorough import every
from unrolled.kernels import native
from unrolled.kernels.book_gru import book_gru, book_gru_reference
from unrolled.kernels.check import check_kernel
from unrolled.kernels.diagonal import diagonal, diagonal_reference
from unrolled.kernels.elman import ACTIVATIONS, elman, elman_reference
from unrolled.kernels.gru import gru, gru_reference
from unrolled.kernels.lstm import lstm, lstm_reference
from unrolled.layers.recurrent.cells import GRU
from unrolled.layers.recurrent.recurrent import Recurrent

LEVELS = ["off", *(level for level in native.allowed()[0] if level in native.built())]
Run = Callable[..., Any]
GATED: dict[str, tuple[Run, Run, int, int, int]] = {  # kernel, reference, gates, biases, states
    "gru": (gru, gru_reference, 3, 2, 1),
    "book-gru": (book_gru, book_gru_reference, 3, 1, 1),
    "lstm": (lstm, lstm_reference, 4, 2, 2),
    **{
        name: (partial(elman, activation=name), partial(elman_reference, activation=name), 1, 1, 1)
        for name in ACTIVATIONS
    },
}


def drawn(name: str, B: int, T: int, D: int, N: int, bias: bool = True, dtype: Any = torch.float32) -> list[Any]:
    _, _, gates, biases, states = GATED[name]
    G = gates * N
    shapes = [(B, T, D), (B, states * N), (G, D), (G, N)]
    scale = [1.0, 1.0, N**-0.5, N**-0.5]
    return [
        *(s * torch.randn(shape, dtype=dtype) for s, shape in zip(scale, shapes, strict=True)),
        *((torch.randn(G, dtype=dtype) if bias else None) for _ in range(biases)),
    ]


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    torch.manual_seed(0)
    always = dict.fromkeys(native.NEEDS, 1 << 30)  # not only where it is faster
    monkeypatch.setattr("unrolled.kernels.lstm.ONEDNN_FROM", always)
    with native.using(request.param) as loaded:
        assert loaded.level == request.param
        yield request.param


@pytest.mark.parametrize("name", every(2, GATED))
def test_all_widths(level: str, name: str) -> None:
    """1 to 70 units, so every remainder of a register and of a tile; 1 to 9 rows, so every remainder of a tile."""
    for N in range(1, 71, 1 if level != "off" else 13):
        B, T, D = 1 + N % 9, 1 + N % 4, 1 + N % 5
        check_kernel(*GATED[name][:2], *drawn(name, B, T, D, N))


@pytest.mark.parametrize("name", GATED)
def test_double_precision_and_no_bias(level: str, name: str) -> None:
    for N in (1, 3, 8, 13, 33):
        check_kernel(*GATED[name][:2], *drawn(name, 4, 5, 2, N, bias=N % 2 == 0, dtype=torch.float64))


def test_the_diagonal_recurrence(level: str) -> None:
    for N in (1, 7, 8, 31, 70):
        for dtype in (torch.float32, torch.float64):
            a, b, h0 = (torch.rand(s, dtype=dtype) for s in ((3, 11, N), (3, 11, N), (3, N)))
            check_kernel(diagonal, diagonal_reference, a, b, h0)


@pytest.mark.parametrize("name", GATED)
def test_long_sequences_and_large_numbers(level: str, name: str) -> None:
    x, *rest = drawn(name, 2, 200, 3, 12)
    with torch.no_grad():
        if name in ("relu", "identity"):
            rest[2] *= 0.5  # a state that neither grows without bound nor saturates
        for ours, true in zip(GATED[name][0](30 * x, *rest), GATED[name][1](30 * x, *rest), strict=True):
            torch.testing.assert_close(ours, true, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", GATED)
def test_only_one_gradient_comes_in(level: str, name: str) -> None:
    """The outputs alone, the last state alone, and gradients whose numbers do not lie side by side."""
    kernel, reference = GATED[name][:2]
    for read in (
        lambda y, last: y[:, -1].sum(),
        lambda y, last: (last**2).sum(),
        lambda y, last: y.sum(),
        lambda y, last: (y.mT.contiguous() ** 2).sum(),
        lambda y, last: y[:, :, 0].sum(),
    ):
        found = []
        for run in (kernel, reference):
            leaves = [None if g is None else g.requires_grad_() for g in drawn(name, 3, 6, 2, 5)]
            torch.manual_seed(0)
            leaves = [None if g is None else torch.randn_like(g).requires_grad_() for g in leaves]
            wanted = [leaf for leaf in leaves if leaf is not None]
            found.append(torch.autograd.grad(read(*run(*leaves)), wanted, allow_unused=True, materialize_grads=True))
        for ours, true in zip(*found, strict=True):
            torch.testing.assert_close(ours, true, rtol=1e-4, atol=1e-5)


def test_activations_keep_their_digits(level: str) -> None:
    """sigmoid and tanh over all of float32, near zero and far out: relative errors of some 1e-7."""
    far = torch.logspace(-30, 38, 2000)
    z = torch.cat([torch.linspace(-20, 20, 40_022), far, -far])
    z = z.view(-1, 69, 1).transpose(1, 2)  # [B, 1, 69]: whole registers and a rest
    B = len(z)
    for name, true in (("sigmoid", torch.sigmoid), ("tanh", torch.tanh)):
        with torch.no_grad():
            y = elman(z, torch.zeros(B, 69), torch.eye(69), torch.zeros(69, 69), None, name)[0]
        torch.testing.assert_close(y.double(), true(z.double()), rtol=5e-7, atol=2e-38)


def test_nan_and_infinity_are_not_hidden(level: str) -> None:
    for name in GATED:
        given = drawn(name, 2, 4, 3, 9)
        given[0][1, 2] = float("nan")
        y, _ = GATED[name][0](*given)
        assert y[1, 2:].isnan().all()
        assert not y[0].isnan().any()
        assert not y[1, :2].isnan().any()


def test_two_threads_at_once(level: str) -> None:
    """Nothing is kept between calls, so two sequences may run at the same time."""
    given = [drawn("gru", 4, 300, 8, 40) for _ in range(2)]
    alone = [gru(*g)[0] for g in given]

    def run(g: list[Any]) -> Tensor:
        with native.using(level):
            return gru(*g)[0]

    with ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            for together, true in zip(pool.map(run, given), alone, strict=True):
                assert torch.equal(together, true)


def test_a_level_is_of_its_own_thread() -> None:
    outside = native.loaded().level
    with native.using("off"), ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: native.loaded().level).result() == outside


def test_rows_are_shared_by_threads(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unrolled.kernels.unroll.LONG", 0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    for name in GATED:
        check_kernel(*GATED[name][:2], *drawn(name, 5, 4, 3, 9))


def test_what_the_library_cannot_do_is_done_by_torch(level: str) -> None:
    given = drawn("gru", 2, 3, 4, 5)
    half = [g.bfloat16() for g in given]
    assert gru(*half)[0].dtype == torch.bfloat16
    assert native.serving(*half) is None
    assert native.serving(given[0], given[1].double()) is None
    assert native.serving(given[0].to("meta")) is None
    assert native.serving(torch.ones(2).as_subclass(Odd)) is None
    assert (native.serving(*given) is None) == (level == "off")
    assert torch.func.vmap(lambda x: torch.ones(1) if native.serving(x) is None else torch.zeros(1))(given[0]).all()


class Odd(Tensor):
    pass


def test_second_derivatives(level: str) -> None:
    """The gradient of a gradient is that of the equations; the outer gradient g is differentiated too."""
    for name in GATED:
        given = drawn(name, 2, 3, 4, 5, dtype=torch.float64)
        found = []
        for run in GATED[name][:2]:
            leaves = [g.detach().clone().requires_grad_() for g in given]
            y, last = run(*leaves)
            first = torch.autograd.grad((y**2).sum() + (last**3).sum(), leaves, create_graph=True)
            found.append(torch.autograd.grad(sum((g**2).sum() for g in first), leaves))
        torch.testing.assert_close(*found, rtol=1e-8, atol=1e-9)
    a, b, h0 = (torch.rand(s, dtype=torch.float64, requires_grad=True) for s in ((2, 4, 3), (2, 4, 3), (2, 3)))
    assert torch.autograd.gradgradcheck(diagonal, (a, b, h0))


def test_no_rows_and_no_ticks(level: str) -> None:
    for name in GATED:
        x, *rest = [None if g is None else g.requires_grad_() for g in drawn(name, 0, 4, 3, 9)]
        y, last = GATED[name][0](x, *rest)
        assert y.shape == (0, 4, 9)
        (y.sum() + last.sum()).backward()
        assert not any(g.grad.any() for g in rest)
    for B, T in ((0, 4), (2, 0)):
        assert diagonal(torch.ones(B, T, 3), torch.ones(B, T, 3), torch.ones(B, 3)).shape == (B, T, 3)
    layer = Recurrent(GRU(3, 5))
    assert layer(torch.zeros(2, 0, 3))[0].shape == (2, 0, 5)


def test_memory_of_any_order(level: str) -> None:
    """Views with strides: inputs, states and weights that do not lie side by side."""
    for name in GATED:
        given = drawn(name, 3, 5, 4, 6)
        bent = [torch.stack([g, g], -1).transpose(0, -2 if g.dim() > 1 else 0).clone() for g in given]
        bent = [b.transpose(0, -2 if b.dim() > 2 else 0)[..., 0] for b in bent]
        assert not any(b.is_contiguous() for b in bent)
        for ours, true in zip(GATED[name][0](*bent), GATED[name][1](*given), strict=True):
            torch.testing.assert_close(ours, true, rtol=1e-4, atol=1e-5)
    a, b, h0 = torch.rand(3, 4, 6).permute(2, 1, 0), torch.rand(4, 6, 3).permute(1, 0, 2), torch.rand(3, 6).t()
    torch.testing.assert_close(diagonal(a, b, h0), diagonal_reference(a, b, h0))


def test_a_difference_is_found() -> None:
    with pytest.raises(AssertionError, match="result 1 differs"):
        check_kernel(torch.exp, lambda x: x.detach().exp() + 0 * x, torch.randn(4))
    with pytest.raises(AssertionError, match="result 0 differs"):
        check_kernel(lambda x: x * torch.nan, lambda x: x, torch.randn(4))
