"""Weights in another order give the same product, only inside the block that promises that they stay."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from unrolled.layers.attention import packed
from unrolled.layers.attention.packed import linear, packed_weights

D, V = 64, packed.LEAST // 64


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[torch.Size]:
    """The tables that were brought into another order."""
    seen: list[torch.Size] = []
    original = packed._pack
    monkeypatch.setattr(packed, "_pack", lambda weight: (seen.append(weight.shape), original(weight))[1])
    return seen


def table() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(V, D), torch.randn(V)


@pytest.mark.parametrize("then", ["none", "relu"])
@pytest.mark.parametrize("shape", [(5, D), (5, 1, D), (2, 3, D)])
def test_it_is_the_same_product(shape: tuple[int, ...], then: str, asked: list[torch.Size]) -> None:
    W, b = table()
    x = torch.randn(*shape)
    wanted = F.relu(F.linear(x, W, b)) if then == "relu" else F.linear(x, W, b)
    with torch.no_grad(), packed_weights():
        for _ in range(3):
            torch.testing.assert_close(linear(x, W, b, then), wanted, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(
            linear(x, W[: V - 1].contiguous(), None), F.linear(x, W[: V - 1]), rtol=1e-4, atol=1e-4
        )
    assert asked == [W.shape], "once for a table, and not for one that is too small"


def test_outside_of_a_block_nothing_is_kept(asked: list[torch.Size]) -> None:
    W, b = table()
    x = torch.randn(5, D)
    with torch.no_grad():
        assert torch.equal(linear(x, W, b), F.linear(x, W, b))
        with packed_weights():
            linear(x, W, b)
        W.mul_(2)
        with packed_weights():
            torch.testing.assert_close(linear(x, W, b), F.linear(x, W, b), rtol=1e-4, atol=1e-4)
    assert asked == [W.shape] * 2


def test_gradients_one_row_and_other_numbers_go_the_plain_way(asked: list[torch.Size]) -> None:
    W, b = table()
    with packed_weights():
        W.requires_grad_()
        linear(torch.randn(5, D), W, b).sum().backward()
        assert W.grad is not None
        with torch.no_grad():
            linear(torch.randn(1, D), W, b)
            linear(torch.randn(500, D), W, b)
            linear(torch.randn(5, D).double(), W.double(), b.double())
    assert asked == []


def test_blocks_within_blocks_share_what_is_kept(asked: list[torch.Size]) -> None:
    W, b = table()
    with torch.no_grad(), packed_weights():
        linear(torch.randn(5, D), W, b)
        with packed_weights():
            linear(torch.randn(5, D), W, b)
        linear(torch.randn(5, D), W, b)
    assert asked == [W.shape]


def test_without_one_dnn_it_is_the_plain_product(monkeypatch: pytest.MonkeyPatch) -> None:
    W, b = table()
    x = torch.randn(5, D)
    monkeypatch.setattr(packed, "_pack", lambda weight: None)
    with torch.no_grad(), packed_weights():
        assert torch.equal(linear(x, W, b), F.linear(x, W, b))
