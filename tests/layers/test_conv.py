"""Causal convolution: its equation, its laws, and a past that costs a tick the same wherever it stands."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.thorough import every
from unrolled.core import state as tree
from unrolled.core.errors import UsageError
from unrolled.layers.conv.conv import CausalConv, NormedConv, Past
from unrolled.testing import check_causal

SHAPES = [(1, 1), (2, 1), (2, 5), (3, 1), (3, 4), (4, 2)]  # kernel, dilation
KINDS = [CausalConv, NormedConv]


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(7)


def ticks(layer: Any, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
    ys = []
    for t in range(x.shape[1]):
        y, state = layer(x[:, t : t + 1], state)
        ys.append(y)
    return torch.cat(ys, dim=1), state


@pytest.mark.parametrize(("kernel", "dilation"), SHAPES)
@pytest.mark.parametrize("kind", every(2, KINDS))
def test_it_is_lawful(kind: type[CausalConv], kernel: int, dilation: int) -> None:
    assert "receptive field" in check_causal(kind(3, 4, kernel, dilation))


def test_a_layer_without_bias_is_lawful() -> None:
    assert check_causal(CausalConv(3, 2, 3, 2, bias=False))


@pytest.mark.parametrize(("kernel", "dilation"), SHAPES)
def test_the_equation(kernel: int, dilation: int) -> None:
    """y_t = b + sum_i W_i x_{t-(k-1-i)d}, written as on the page."""
    layer = CausalConv(3, 4, kernel, dilation).double()
    x = torch.randn(2, 17, 3, dtype=torch.float64)
    y, _ = layer(x)
    for t in range(17):
        wanted = layer.bias.expand(2, 4)  # type: ignore[union-attr]
        for i in range(kernel):
            before = t - (kernel - 1 - i) * dilation
            if before >= 0:
                wanted = wanted + x[:, before] @ layer.weight[:, i].T
        torch.testing.assert_close(y[:, t], wanted)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("kernel", "dilation"), [(2, 3), (3, 2)])
def test_gradients(kind: type[CausalConv], kernel: int, dilation: int) -> None:
    layer = kind(2, 3, kernel, dilation).double()
    names = [name for name, _ in layer.named_parameters()]
    taps = torch.randn(2, dilation, (kernel - 1) * 2, dtype=torch.float64, requires_grad=True)
    x = torch.randn(2, 4, 2, dtype=torch.float64, requires_grad=True)

    def run(x: Tensor, taps: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
        past = Past(taps, torch.tensor([0, 1]))  # rows at unlike phases
        y, after = torch.func.functional_call(layer, dict(zip(names, weights)), (x, past))
        return y, after.taps

    assert torch.autograd.gradcheck(run, (x, taps, *layer.parameters()))


@pytest.mark.parametrize("rows", every(2, [1, 3]))
@pytest.mark.parametrize("kind", KINDS)
def test_ten_thousand_ticks_are_one_pass(kind: type[CausalConv], rows: int) -> None:
    layer = kind(2, 2, kernel=3, dilation=16)
    x = torch.randn(rows, 10_000, 2)
    with torch.no_grad():
        y, state = ticks(layer, x)
        wanted, after = layer(x)
        torch.testing.assert_close(y, wanted, rtol=1e-4, atol=1e-5)
        more = torch.randn(rows, 40, 2)
        torch.testing.assert_close(layer(more, state)[0], layer(more, after)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_tick_without_gradients_works_in_the_memory_of_the_state(rows: int) -> None:
    layer = CausalConv(3, 4, kernel=3, dilation=4)
    x = torch.randn(rows, 30, 3)
    with torch.no_grad():
        _, state = layer(x[:, :2])
        place = [leaf.data_ptr() for leaf in tree.leaves(state)]
        for t in range(2, 30):
            before = state.taps.clone()
            _, state = layer(x[:, t : t + 1], state)
            assert [leaf.data_ptr() for leaf in tree.leaves(state)] == place
            changed = (before != state.taps).any(dim=2)  # [B, d]
            assert (changed.sum(dim=1) <= 1).all()  # one phase of four, the others were not touched


@pytest.mark.parametrize("rows", [1, 2])
def test_with_gradients_or_in_chunks_the_state_given_is_left_alone(rows: int) -> None:
    layer = CausalConv(3, 4, kernel=3, dilation=4)
    x = torch.randn(rows, 9, 3)
    for T, gradients in ((1, True), (3, True), (3, False)):
        _, state = layer(x)
        before = [leaf.clone() for leaf in tree.leaves(state)]
        with torch.set_grad_enabled(gradients):
            y, _ = layer(x[:, :T], state)
        assert y.requires_grad == gradients
        assert all(torch.equal(a, b) for a, b in zip(tree.leaves(state), before))


@pytest.mark.parametrize("gradients", [True, False])
def test_a_state_never_shares_memory_with_the_input(gradients: bool) -> None:
    """A later tick writes into the state; were it a view of x, it would write there."""
    for kernel, dilation, T in ((2, 1, 1), (2, 1, 5), (2, 4, 9), (3, 1, 7)):
        layer = CausalConv(3, 4, kernel, dilation)
        x = torch.randn(1, T, 3)
        kept = x.clone()
        with torch.set_grad_enabled(gradients):
            _, state = layer(x)
        with torch.no_grad():
            for _ in range(6):
                _, state = layer(torch.randn(1, 1, 3), state)
        assert torch.equal(x, kept)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("kernel", "dilation"), [(2, 1), (2, 3), (3, 1), (3, 3)])
def test_ticks_that_follow_a_training_chunk_do_not_disturb_its_gradients(kernel: int, dilation: int, rows: int) -> None:
    layer, x = CausalConv(3, 4, kernel, dilation), torch.randn(rows, 9, 3)
    found = []
    for streams_on in (False, True):
        layer.zero_grad()
        y, state = layer(x)
        if streams_on:
            with torch.no_grad():
                ticks(layer, torch.randn(rows, 7, 3), state)
        y.square().sum().backward()
        assert layer.weight.grad is not None
        found.append(layer.weight.grad.clone())
    assert torch.equal(*found)


def test_rows_at_unlike_phases_go_on_together() -> None:
    layer = CausalConv(3, 4, kernel=3, dilation=4)
    x = torch.randn(2, 20, 3)
    with torch.no_grad():
        wanted, _ = layer(x)
        _, slow = ticks(layer, x[:, :5])
        _, fast = ticks(layer, x[:, :7])
        state = tree.where(torch.tensor([True, False]), fast, slow)
        assert state.phase.tolist() == [3, 1]
        for n in range(10):
            y, state = layer(torch.stack([x[0, 7 + n], x[1, 5 + n]])[:, None], state)
            torch.testing.assert_close(y[0, 0], wanted[0, 7 + n])
            torch.testing.assert_close(y[1, 0], wanted[1, 5 + n])


class Operations(TorchDispatchMode):
    """Counts torch operations and the values that they return."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()
        self.values = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.seen[str(func)] += 1
        self.values += result.numel() if isinstance(result, Tensor) else 0
        return result


def calls(run: Any) -> int:
    """How many calls of Python and C functions a run makes."""
    count = 0

    def watch(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def test_a_tick_of_several_rows_costs_the_same_anywhere_and_for_any_dilation() -> None:
    costs = []
    for dilation in (4, 512):
        layer = CausalConv(3, 4, kernel=3, dilation=dilation)
        for position in (10, 1000):
            with torch.no_grad():
                _, state = layer(torch.randn(2, position, 3))
                _, state = layer(torch.randn(2, 1, 3), state)
                with Operations() as counted:
                    layer(torch.randn(2, 1, 3), state)
            costs.append((dict(counted.seen), counted.values))
    assert all(cost == costs[0] for cost in costs)
    assert sum(costs[0][0].values()) < 20


def test_a_tick_of_one_row_costs_the_same_anywhere() -> None:
    layer = CausalConv(3, 4, kernel=3, dilation=4)
    counts = []
    with torch.no_grad():
        x, (_, state) = torch.randn(1, 1, 3), layer(torch.randn(1, 1, 3))
        for _ in range(60):
            counts.append(calls(lambda: layer(x, state)))
    assert len(set(counts[2:])) == 1, counts


def test_inference_mode_and_back() -> None:
    layer = CausalConv(3, 4, kernel=3, dilation=2)
    x = torch.randn(2, 12, 3)
    wanted, _ = layer(x)
    with torch.inference_mode():
        first, state = layer(x[:, :5])
        second, state = ticks(layer, x[:, 5:8], state)
    with torch.no_grad():
        third, _ = ticks(layer, x[:, 8:], state)
    torch.testing.assert_close(torch.cat([first.clone(), second.clone(), third], dim=1), wanted)


@pytest.mark.parametrize("rows", [1, 2])
def test_another_precision_than_the_states(rows: int) -> None:
    """A state that was made under autocast goes on in full precision."""
    layer = CausalConv(3, 4, kernel=2, dilation=3)
    x = torch.randn(rows, 8, 3)
    with torch.no_grad():
        _, state = layer(x[:, :5])
        coarse = Past(state.taps.bfloat16(), state.phase)
        y, _ = ticks(layer, x[:, 5:], coarse)
        wanted, _ = ticks(layer, x[:, 5:], state)
        with torch.autocast("cpu", torch.bfloat16):
            mixed, after = layer(x)
            layer(x[:, :1], after)
    assert y.dtype == torch.float32
    torch.testing.assert_close(y, wanted, rtol=0.05, atol=0.05)
    torch.testing.assert_close(mixed.float(), layer(x)[0], rtol=0.05, atol=0.05)


def test_weight_norm_is_alive() -> None:
    """Both halves act on the output and are trained; the start is that of the plain layer."""
    torch.manual_seed(3)
    plain = CausalConv(3, 4, kernel=2)
    torch.manual_seed(3)
    normed = NormedConv(3, 4, kernel=2)
    x = torch.randn(2, 6, 3)
    torch.testing.assert_close(normed(x)[0], plain(x)[0])
    normed(x)[0].square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in normed.parameters())
    with torch.no_grad():
        before, _ = normed(x)
        normed.weight.mul_(5)  # a longer V is no change, a longer g is
        torch.testing.assert_close(normed(x)[0], before)
        normed.length.mul_(2)
        bias = normed.bias
        assert bias is not None
        torch.testing.assert_close(normed(x)[0] - bias, 2 * (before - bias))


def test_sizes_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="invalid value dilation = 0"):
        CausalConv(3, 4, 2, dilation=0)
    with pytest.raises(UsageError, match="kernel = 0"):
        CausalConv(3, 4, 0)
