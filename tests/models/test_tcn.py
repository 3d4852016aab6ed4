"""The temporal convolutional network, both forms."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from unrolled.core.compose import AsEncoder
from unrolled.core.errors import UsageError
from unrolled.core.spec import Sizes
from unrolled.layers.conv.conv import CausalConv, NormedConv
from unrolled.layers.parts.assembled import Reader
from unrolled.layers.readouts.last import Last
from unrolled.models.tcn import TCN, Block, Config, make
from unrolled.testing import check_causal


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(5)


def convs(body: nn.Module) -> list[CausalConv]:
    return [m for m in body.modules() if isinstance(m, CausalConv)]


@pytest.mark.parametrize(
    "config",
    [
        Config(widths=(4, 4, 6), kernel=3, weight_norm=True),
        Config(widths=(4,), kernel=1, dropout=0.3),
        Config(form="plain", widths=(4, 5, 6), kernel=2, dropout=0.3),
        Config(form="plain", widths=(4, 5), kernel=3, weight_norm=True),
    ],
    ids=["normed", "kernel-1", "plain", "plain-normed"],
)
def test_it_is_lawful(config: Config) -> None:
    check_causal(make(config, Sizes(3, 9)), d_in=3)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (Config(widths=(4,) * 5, kernel=3), 1 + 2 * 2 * 31),  # 1 + 2 (k-1) (2^n - 1)
        (Config(widths=(4,) * 8, kernel=8), 3571),
        (Config(form="plain", widths=(4,) * 4, kernel=3), 31),  # 1 + (k-1) (2^n - 1)
        (Config(form="plain", widths=(4,), kernel=1), 1),
    ],
)
def test_receptive_fields(config: Config, field: int) -> None:
    assert make(config, Sizes(3, 9)).receptive_field == field


def test_dilations_double_and_widths_follow() -> None:
    body = make(Config(widths=(4, 4, 6)), Sizes(3, 9))
    assert [c.dilation for c in convs(body)] == [1, 1, 2, 2, 4, 4]
    assert [(c.d_in, c.d_out) for c in convs(body)] == [(3, 4), (4, 4), (4, 4), (4, 4), (4, 6), (6, 6)]
    assert body.d_out == 6
    carries = [m.carry for m in body.modules() if isinstance(m, Block)]
    assert [c is not None for c in carries] == [True, False, True]  # 1x1 where widths differ


def test_the_residual_block_as_on_the_page() -> None:
    body = make(Config(widths=(4,), kernel=2), Sizes(3, 9))
    (block,) = (m for m in body.modules() if isinstance(m, Block))
    first, second = convs(body)
    assert block.carry is not None
    x = torch.randn(2, 7, 3)
    h = torch.relu(second(torch.relu(first(x)[0]))[0])
    wanted = torch.relu(x @ block.carry.weight.T + block.carry.bias + h)
    torch.testing.assert_close(body(x)[0], wanted)


def test_the_plain_form_as_on_the_page() -> None:
    body = make(Config(form="plain", widths=(4, 5)), Sizes(3, 9))
    h = torch.randn(2, 7, 3)
    y, _ = body(h)
    for conv in convs(body):
        h = torch.relu(conv(h)[0])
    torch.testing.assert_close(y, h)


@pytest.mark.parametrize("form", ["residual", "plain"])
def test_dropout_and_weight_norm_are_where_they_are_said(form: str) -> None:
    body = make(Config.parse({"form": form, "widths": (64, 64), "dropout": 0.5, "weight_norm": True}), Sizes(3, 9))
    assert all(isinstance(c, NormedConv) for c in convs(body))
    x = torch.randn(2, 7, 3)
    assert not torch.equal(body(x)[0], body(x)[0])
    body.eval()
    assert torch.equal(body(x)[0], body(x)[0])


def ticks(body: nn.Module, x: Tensor, state: Any = None) -> Tensor:
    ys: list[Tensor] = []
    with torch.no_grad():
        for t in range(x.shape[1]):
            y, state = body(x[:, t : t + 1], state)
            ys.append(y)
    return torch.cat(ys, dim=1)


@pytest.mark.parametrize("form", ["residual", "plain"])
@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize(("rows", "dtype"), [(1, torch.float32), (1, torch.float64), (2, torch.float32)])
def test_ticks_are_the_whole(form: str, normed: bool, rows: int, dtype: torch.dtype) -> None:
    config = Config.parse({"form": form, "widths": (4, 4, 6), "weight_norm": normed, "dropout": 0.5})
    body = make(config, Sizes(3, 9)).to(dtype).eval()
    x = torch.randn(rows, 30, 3, dtype=dtype)
    torch.testing.assert_close(ticks(body, x), body(x)[0].detach())
    with torch.no_grad():
        for parameter in body.parameters():
            parameter.mul_(1.5)
    torch.testing.assert_close(ticks(body, x), body(x)[0].detach())


@pytest.mark.parametrize("rows", [1, 2])
def test_it_streams_on_from_a_training_chunk(rows: int) -> None:
    """The state is still part of a graph: the past of the first layer is not, that of the others is."""
    body = make(Config(widths=(4, 4), kernel=2), Sizes(3, 9)).eval()
    x = torch.randn(rows, 12, 3)
    y, state = body(x[:, :7])
    assert ticks(body, x[:, 7:], state).allclose(body(x)[0][:, 7:], atol=1e-6)
    y.square().sum().backward()


@pytest.mark.long
def test_ten_thousand_ticks_are_one_pass() -> None:
    body = make(Config(widths=(3, 3, 3), kernel=3), Sizes(2, 9)).eval()
    x = torch.randn(1, 10_000, 2)
    torch.testing.assert_close(ticks(body, x), body(x)[0].detach(), rtol=1e-4, atol=1e-5)


def test_it_learns_what_is_far_back() -> None:
    """The sign of the input 20 steps ago: within reach of four blocks, out of reach of three."""
    lag, losses = 20, {}
    for blocks in (3, 4):
        torch.manual_seed(0)
        body, head = make(Config(widths=(16,) * blocks, kernel=2), Sizes(1, 1)), nn.Linear(16, 1)
        optimiser = torch.optim.AdamW([*body.parameters(), *head.parameters()], lr=0.01)
        for _ in range(150):
            x = torch.randn(16, 60, 1).sign()
            loss = (head(body(x)[0])[:, lag:] - x[:, :-lag]).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        assert isinstance(body, TCN)
        losses[body.receptive_field] = loss.item()
    assert losses[15] > 0.9
    assert losses[31] < 0.1


def test_a_network_without_layers_is_refused() -> None:
    with pytest.raises(UsageError, match="widths"):
        Config.parse({"widths": []})
    with pytest.raises(UsageError, match="widths"):
        Config.parse({"widths": [4, 0]})


@pytest.mark.parametrize("form", ["residual", "plain"])
@pytest.mark.parametrize("weight_norm", [False, True])
@pytest.mark.parametrize("kernel", [1, 2, 3, 7])
@pytest.mark.parametrize("length", [1, 5, 40, 100])
def test_the_short_way_to_the_last_output(form, weight_norm, kernel, length):
    config = Config(form=form, widths=(4, 5, 5, 6, 6), kernel=kernel, weight_norm=weight_norm)
    body = make(config, Sizes(3, 0)).double()
    x = torch.randn(4, length, 3, dtype=torch.double, requires_grad=True)
    for lengths in ([length] * 4, [length, max(1, length // 2), 1, 0]):
        mask = torch.arange(length) < torch.tensor(lengths)[:, None]
        y = AsEncoder(body)(x, mask)[0]
        last = torch.stack([y[b, n - 1] if n else torch.zeros_like(y[b, 0]) for b, n in enumerate(lengths)])
        ending, answered = Reader(None, body, Last(6))(x, mask)
        assert ending.shape == (4, 1, 6) and answered.all()
        torch.testing.assert_close(ending[:, 0], last)
        torch.testing.assert_close(
            torch.autograd.grad(ending.square().sum(), x)[0], torch.autograd.grad(last.square().sum(), x)[0]
        )


def test_the_short_way_computes_a_few_positions():
    body = make(Config(widths=(4,) * 8, kernel=7), Sizes(1, 0))
    seen = []
    for layer in body.layers:
        layer.thinned = lambda line, *rest, own=layer.thinned: seen.append(line.shape[1]) or own(line, *rest)
    body.ending(torch.randn(2, 784, 1), torch.ones(2, 784, dtype=torch.bool))
    assert seen == [784, 392, 196, 98, 49, 25, 13, 7]
