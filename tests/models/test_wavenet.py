"""WaveNet: its equations by hand, its conditions, its streaming; sequences that run beside any decoder."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from unrolled.core import state as tree
from unrolled.core.compose import Serial
from unrolled.core.errors import UsageError
from unrolled.core.spec import Sizes
from unrolled.core.trace import trace
from unrolled.layers.parts.conditioning import Appended, Guided
from unrolled.layers.recurrent.cells import GRU
from unrolled.layers.recurrent.recurrent import Recurrent
from unrolled.models.wavenet import Config, WaveNet, make
from unrolled.testing import check_causal, check_conditional

SMALL = Config(d_model=3, d_skip=4, n_dilations=2, n_stacks=2)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(5)


def ticks(layer: Any, x: Tensor, state: Any = None) -> Tensor:
    ys = []
    for t in range(x.shape[1]):
        y, state = layer(x[:, t : t + 1], state)
        ys.append(y)
    return torch.cat(ys, dim=1)


def by_hand(net: WaveNet, x: Tensor, h: Tensor | None = None) -> Tensor:
    """The equations of the docstring, each convolution as a sum over taps."""

    def conv(W: Tensor, b: Tensor, d: int, x: Tensor) -> Tensor:
        y = b.expand(*x.shape[:2], -1)
        k, T = W.shape[1], x.shape[1]
        for i in range(k):
            back = min((k - 1 - i) * d, T)
            y = y + torch.cat([torch.zeros_like(x[:, :back]), x[:, : T - back]], dim=1) @ W[:, i].T
        return y

    stack = net.stack
    C = stack.width
    if net.d_local:
        x, c = x[..., : -net.d_local], x[..., -net.d_local :]
    x = conv(net.entry.weight, net.entry.bias, 1, x)  # type: ignore[arg-type]
    skips = net.skip.bias
    for n, d in enumerate(stack.dilations):
        a = conv(stack.weight[n].transpose(0, 1), stack.bias[n], d, x)
        part = slice(2 * C * n, 2 * C * (n + 1))
        if h is not None and net.globals is not None:
            a = a + (h @ net.globals.weight[part].T)[:, None]
        if net.locals is not None:
            a = a + c @ net.locals.weight[part].T
        z = torch.tanh(a[..., :C]) * torch.sigmoid(a[..., C:])
        skips = skips + z @ net.skip.weight[:, C * n : C * (n + 1)].T
        if n < net.n_layers - 1:
            x = x + z @ stack.residual_weight[n].T + stack.residual_bias[n]
    return torch.relu(net.last(torch.relu(skips)))


@pytest.mark.parametrize("kernel", [2, 3])
def test_the_equations(kernel: int) -> None:
    net = make(SMALL.updated({"kernel": kernel}), Sizes(5, 9))
    x = torch.randn(2, 12, 5)
    torch.testing.assert_close(net(x)[0], by_hand(net, x))
    assert net.stack.dilations == (1, 2, 1, 2)


def test_the_equations_under_conditions() -> None:
    net = make(SMALL.updated({"d_global": 2, "d_local": 3}), Sizes(5 + 3, 9))
    x, h = torch.randn(2, 12, 8), torch.randn(2, 2)
    y, _ = net(x, net.start(h))
    torch.testing.assert_close(y, by_hand(net, x, h))
    torch.testing.assert_close(net(x)[0], by_hand(net, x, torch.zeros(2, 2)))  # without one it is zero
    assert not torch.equal(y, net(x)[0])


@pytest.mark.parametrize("kernel", [1, 3])
def test_it_is_lawful(kernel: int) -> None:
    check_causal(make(SMALL.updated({"kernel": kernel, "dropout": 0.2}), Sizes(5, 9)))


def test_receptive_field() -> None:
    """1 + (k-1) (1 + stacks (2^n - 1)): a stack up to dilation 512 sees 1024 of the entry's outputs."""
    assert make(Config(d_model=2, n_dilations=10), Sizes(1, 9)).receptive_field == 1025
    assert make(Config(d_model=2, n_dilations=10, n_stacks=3), Sizes(1, 9)).receptive_field == 1 + 1 + 3 * 1023
    assert make(Config(d_model=2, n_dilations=3, kernel=3), Sizes(1, 9)).receptive_field == 1 + 2 * (1 + 7)


def test_every_weight_is_used() -> None:
    net = make(SMALL.updated({"d_global": 2, "d_local": 3}), Sizes(8, 9))
    net(torch.randn(4, 12, 8), net.start(torch.randn(4, 2)))[0].square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in net.parameters())


@pytest.mark.long
def test_ten_thousand_ticks_are_one_pass_in_the_same_memory() -> None:
    net = make(Config(d_model=2, d_skip=2, n_dilations=3), Sizes(2, 9)).eval()
    x = torch.randn(1, 10_000, 2)
    with torch.no_grad():
        _, state = net(x[:, :1])
        places = [leaf.data_ptr() for leaf in tree.leaves(state)]
        y = ticks(net, x[:, 1:], state)
        assert [leaf.data_ptr() for leaf in tree.leaves(state)] == places
        torch.testing.assert_close(y, net(x)[0][:, 1:], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("d_global", "d_local"), [(0, 0), (2, 0), (0, 1), (2, 1)])
def test_ticks_under_conditions_are_the_whole(d_global: int, d_local: int, rows: int) -> None:
    net = make(SMALL.updated({"d_global": d_global, "d_local": d_local}), Sizes(3 + d_local, 9)).eval()
    x, h = torch.randn(rows, 20, 3 + d_local), torch.randn(rows, 2)
    with torch.no_grad():
        wanted, _ = net(x, net.start(h) if d_global else None)
        torch.testing.assert_close(ticks(net, x, net.start(h) if d_global else None), wanted)
        torch.testing.assert_close(ticks(net.train(), x, net.start(h) if d_global else None), wanted)


@pytest.mark.parametrize("rows", [1, 2])
def test_it_streams_on_from_a_training_chunk(rows: int) -> None:
    """The state is still part of a graph: the past of the entry is not, that of the stack is."""
    net = make(SMALL, Sizes(3, 9)).eval()
    x = torch.randn(rows, 12, 3)
    y, state = net(x[:, :7])
    with torch.no_grad():
        assert ticks(net, x[:, 7:], state).allclose(net(x)[0][:, 7:], atol=1e-6)
    y.square().sum().backward()


def test_the_state_is_as_large_as_the_dilations() -> None:
    net = make(Config(d_model=2, d_skip=2, n_dilations=4), Sizes(3, 9))
    _, (_, entry, stack) = net(torch.randn(1, 50, 3))
    assert entry.taps.shape == (1, 1, 3)
    assert stack.taps.shape == (1, 1 + 2 + 4 + 8, 2)


def test_tracing_offers_the_gated_units() -> None:
    with trace() as seen:
        make(SMALL, Sizes(5, 9))(torch.randn(2, 6, 5))
    (z,) = seen["gated"]
    assert z.shape == (2, 6, 4 * 3)
    assert z.abs().max() < 1


# ---- conditions as a source

LOCAL = torch.randn(3, 5, 2, generator=torch.Generator().manual_seed(1))
GLOBAL = torch.randn(3, 4, generator=torch.Generator().manual_seed(2))
REAL = torch.arange(5) < torch.tensor([[5], [3], [1]])


def local_only() -> Guided:
    return Guided(Serial(Appended(2), make(SMALL.updated({"d_local": 2}), Sizes(5, 9))))


def both() -> Guided:
    net = make(SMALL.updated({"d_local": 2, "d_global": 4}), Sizes(3 + 2, 9))
    return Guided(Serial(nn.Embedding(6, 3), Appended(2), net, nn.Linear(4, 6)))


def test_a_local_condition_is_lawful() -> None:
    assert "condition" in check_conditional(local_only(), LOCAL, REAL, torch.randn(3, 4, 3))


def test_a_global_condition_is_lawful() -> None:
    model = Guided(Serial(make(SMALL.updated({"d_global": 4}), Sizes(3, 9))))
    assert "condition" in check_conditional(model, GLOBAL, None, torch.randn(3, 4, 3))


@pytest.mark.long
def test_both_conditions_of_a_token_model_are_lawful() -> None:
    source = {"local": LOCAL, "global": GLOBAL}
    assert "condition" in check_conditional(both(), source, None, torch.randint(6, (3, 4)))


def test_a_sequence_runs_beside_any_decoder() -> None:
    model = Guided(Serial(Appended(2), Recurrent(GRU(5, 3))))
    assert "condition" in check_conditional(model, LOCAL, REAL, torch.randn(3, 4, 3))


def test_the_local_condition_reaches_its_own_step_and_later_ones() -> None:
    model = local_only()
    x = torch.randn(3, 5, 3)
    changed = LOCAL.clone()
    changed[:, 2] += 1
    y, other = (model.decoder(x, model.condition(s))[0] for s in (LOCAL, changed))
    assert torch.equal(y[:, :2], other[:, :2])
    assert (y[:, 2:] != other[:, 2:]).any(dim=2).all()


def test_columns_are_appended_by_a_cursor_per_row() -> None:
    layer, x = Appended(2), torch.zeros(3, 7, 1)
    whole, _ = layer(x, layer.start(LOCAL, REAL))
    wanted = torch.cat([torch.where(REAL[..., None], LOCAL, 0), torch.zeros(3, 2, 2)], dim=1)
    assert torch.equal(whole[..., 1:], wanted)
    _, old = layer(x[:, :1], layer.start(LOCAL, REAL))
    _, new = layer(x[:, :1], old)
    mixed = tree.where(torch.tensor([True, False, True]), new, old)
    y, _ = layer(x[:, :2], mixed)
    assert torch.equal(y[..., 1:], torch.stack([wanted[0, 2:4], wanted[1, 1:3], wanted[2, 2:4]]))
    assert torch.equal(layer(x)[0], torch.zeros(3, 7, 3))  # nothing was started


def test_sources_are_asked_for_by_name() -> None:
    with pytest.raises(UsageError, match="takes the sources global, local; found one tensor"):
        both().condition(LOCAL)
    with pytest.raises(UsageError, match="found global"):
        both().condition({"global": GLOBAL})
    with pytest.raises(UsageError, match=r"shape \[B, S, 2\], found \[3, 4\]"):
        local_only().condition(GLOBAL)
    with pytest.raises(UsageError, match=r"shape \[B, 4\], not \[3, 5, 2\]"):
        both().condition({"global": LOCAL, "local": LOCAL})
    with pytest.raises(UsageError, match="has no global condition"):
        make(SMALL, Sizes(5, 9)).start(GLOBAL)
    with pytest.raises(UsageError, match="d_local = 5: expected less than"):
        make(SMALL.updated({"d_local": 5}), Sizes(5, 9))
