"""Positions: the book's equations, chunks, tables with an end, and the rotation between two places."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from unrolled.core.errors import UsageError
from unrolled.layers.attention.position import (
    Joint,
    Learned,
    OneHot,
    Placed,
    PlacedAll,
    Position,
    Rotary,
    SinusoidAdded,
    SinusoidAppended,
    position_named,
    sinusoids,
)  # fmt: skip
from unrolled.testing import check_causal, check_encoder

KINDS = {
    "one-hot": lambda: OneHot(3, 12),
    "joint": lambda: Joint(3, 5, 12),
    "learned": lambda: Learned(3, 12),
    "sinusoid-appended": lambda: SinusoidAppended(3, 4),
    "sinusoid": lambda: SinusoidAdded(3),
}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_positions_are_lawful(kind: str) -> None:
    position = KINDS[kind]()
    passed = check_causal(Placed(position))
    assert ("length" in passed) is (position.max_length is not None)
    check_encoder(PlacedAll(position))
    y, _ = Placed(position)(torch.randn(2, 4, 3))
    assert y.shape[-1] == position.d_out


def test_one_hot_as_in_the_book() -> None:
    x = torch.tensor([[[0.2, -1.3], [5, 5], [5, 5], [0.2, -1.3]]])
    y, _ = Placed(OneHot(2, 4))(x)
    assert y[0, 0].tolist() == pytest.approx([0.2, -1.3, 1, 0, 0, 0])
    assert y[0, 3].tolist() == pytest.approx([0.2, -1.3, 0, 0, 0, 1])


def test_joint_is_equation_7_28() -> None:
    layer, x = Joint(3, 5, 7), torch.randn(1, 7, 3)
    y, _ = Placed(layer)(x)
    for t in range(7):
        e = torch.zeros(7)
        e[t] = 1
        wanted = layer.W_1 @ torch.relu(layer.W_2 @ x[0, t] + layer.W_3.T @ e + layer.b)
        torch.testing.assert_close(y[0, t], wanted)


def test_sinusoids_are_equations_7_29_and_7_30() -> None:
    x, p_e, M = torch.randn(1, 6, 8).double(), 8, 10_000
    r = torch.tensor([
        [f(t / M ** (2 * i / p_e)) for i in range(p_e // 2) for f in (math.sin, math.cos)] for t in range(1, 7)
    ]).double()  # fmt: skip
    appended, _ = Placed(SinusoidAppended(8, p_e))(x)
    torch.testing.assert_close(appended[0], torch.cat([x[0], r], dim=-1), atol=1e-7, rtol=0)
    added, _ = Placed(SinusoidAdded(8))(x)
    torch.testing.assert_close(added, x + r, atol=1e-7, rtol=0)


def test_the_lecture_notes_count_from_zero_and_the_book_from_one() -> None:
    x = torch.zeros(1, 5, 4).double()
    book, notes = Placed(SinusoidAdded(4))(x)[0], Placed(SinusoidAdded(4, first=0))(x)[0]
    torch.testing.assert_close(notes[:, 1:], book[:, :-1])
    assert notes[0, 0].tolist() == [0, 1, 0, 1]


def test_a_shift_is_a_rotation_that_does_not_depend_on_the_position() -> None:
    """PE(pos + k) = R_k PE(pos), one rotation by the angle k / M^(2i / p_e) per pair."""
    p_e, k = 10, 17
    w = k * 10_000.0 ** (-torch.arange(0, p_e, 2).double() / p_e)
    rotation = torch.block_diag(*[
        torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]).double() for a in w.tolist()
    ])  # fmt: skip
    torch.testing.assert_close(rotation @ rotation.T, torch.eye(p_e).double(), atol=1e-7, rtol=0)
    for position in (0, 5, 12_345):
        at = torch.tensor([position, position + k])
        before, after = sinusoids(at, p_e)
        torch.testing.assert_close(rotation @ before, after, atol=1e-6, rtol=0)


def test_far_positions_keep_their_digits_in_float32() -> None:
    layer = Placed(SinusoidAdded(4))
    y, _ = layer(torch.zeros(1, 1, 4), torch.tensor([10_000_000]))
    assert y[0, 0, 0].item() == pytest.approx(math.sin(10_000_001), abs=1e-6)


def test_rotary_products_depend_on_the_distance_alone() -> None:
    rotary, q, k = Rotary(), torch.randn(8).double(), torch.randn(8).double()

    def product(t: int, tau: int) -> Tensor:
        a = rotary(q.view(1, 1, 1, 8), torch.tensor([t]))
        return (a * rotary(k.view(1, 1, 1, 8), torch.tensor([[tau]]))).sum()

    torch.testing.assert_close(product(0, 0), q @ k)
    torch.testing.assert_close(product(105, 100), product(5, 0))
    torch.testing.assert_close(product(5, 12), product(1005, 1012))
    assert not torch.isclose(product(5, 0), product(6, 0))
    turned = rotary(q.view(1, 1, 1, 8), torch.tensor([9]))
    torch.testing.assert_close(turned.norm(), q.norm())


@pytest.mark.parametrize("kind", ["one-hot", "joint", "learned"])
def test_an_exceeded_table_is_refused_before_any_work(kind: str) -> None:
    class Counted(type(KINDS[kind]())):  # type: ignore[misc]
        calls = 0

        def forward(self, x: Tensor, at: Tensor) -> Tensor:
            Counted.calls += 1
            return super().forward(x, at)

    position = Counted(*{"one-hot": (3, 12), "joint": (3, 5, 12), "learned": (3, 12)}[kind])
    layer = Placed(position)
    assert layer.max_length == 12
    with pytest.raises(UsageError, match="position 13 is beyond max_length = 12"):
        layer(torch.randn(1, 13, 3))
    assert Counted.calls == 0
    _, state = layer(torch.randn(1, 12, 3))
    with pytest.raises(UsageError, match="position 13 is beyond max_length = 12"):
        layer(torch.randn(1, 1, 3), state)
    assert Counted.calls == 1


def test_padding_may_stand_beyond_a_table() -> None:
    layer, x = PlacedAll(Learned(3, 4)), torch.randn(1, 6, 3)
    y, _ = layer(x, torch.tensor([[True] * 4 + [False] * 2]))
    torch.testing.assert_close(y[:, :4], layer(x[:, :4], torch.ones(1, 4, dtype=torch.bool))[0])
    with pytest.raises(UsageError, match="position 5 is beyond max_length = 4"):
        layer(x, torch.tensor([[True] * 5 + [False]]))


def test_rows_have_their_own_counter() -> None:
    layer = Placed(Learned(3, 12))
    x = torch.zeros(2, 2, 3)
    y, state = layer(x, torch.tensor([0, 7]))
    torch.testing.assert_close(y, layer.position.table[torch.tensor([[0, 1], [7, 8]])])  # type: ignore[index]
    assert state.tolist() == [2, 9]


def test_kinds_by_name() -> None:
    for kind in KINDS:
        position = position_named(kind, 3, 4, 12)
        assert isinstance(position, Position)
        assert position.d_out in (3, 4, 3 + 4, 3 + 12)
    assert position_named("rotary", 3, 4, 12) is None
    with pytest.raises(UsageError, match="did you mean 'learned'"):
        position_named("lerned", 3, 4, 12)
    with pytest.raises(UsageError, match="d_position = 3: expected an even number"):
        SinusoidAppended(4, 3)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_row_that_is_furthest_reaches_the_end_of_the_table(enabled: bool) -> None:
    """Rows stand at different positions: the longest counts, wherever it stands, and not the shortest."""
    layer = Placed(Learned(4, max_length=8))
    x = torch.zeros(3, 2, 4)
    with torch.set_grad_enabled(enabled):
        for lengths in ([0, 7, 0], [7, 0, 0], [0, 0, 7]):
            with pytest.raises(UsageError, match="position 9 is beyond max_length = 8"):
                layer(x, torch.tensor(lengths))
        y, state = layer(x, torch.tensor([0, 6, 3]))
    assert state.tolist() == [2, 8, 5]
    table = layer.position.table  # type: ignore[union-attr]
    torch.testing.assert_close(y[1], table[6:8])
