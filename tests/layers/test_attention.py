"""Scores, heads, causal and windowed attention with its key/value state, the tiled algorithm, sources."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tests.thorough import every
from unrolled.core import state as tree
from unrolled.core.causal import Conditional
from unrolled.core.errors import UsageError
from unrolled.core.state import Fixed
from unrolled.core.trace import trace
from unrolled.layers.attention import attention as attention_file
from unrolled.layers.attention.attention import (
    CausalSelfAttention,
    CrossAttention,
    Heads,
    MultiHead,
    SelfAttention,
    Simple,
    Versatile,
    attend,
    attend_causally,
    band,
    fast,
)  # fmt: skip
from unrolled.layers.attention.key_value import LEAST_ROOM
from unrolled.layers.attention.position import Rotary
from unrolled.layers.attention.scores import SCORES, Additive, Concatenation, ScaledDot, score_named
from unrolled.layers.attention.tiled import tiled_attention
from unrolled.testing import check_causal, check_conditional, check_encoder


def make(window: int | None = None, rotary: bool = True, heads: Heads | None = None) -> CausalSelfAttention:
    torch.manual_seed(3)
    heads = MultiHead(6, n_heads=2, d_key=4, d_value=3) if heads is None else heads
    return CausalSelfAttention(heads, window=window, rotary=Rotary() if rotary else None).double()


# ---- scores


def test_concatenation_and_additive_scores_are_one_function() -> None:
    torch.manual_seed(0)
    concatenation, additive = Concatenation(3, 4, 5), Additive(3, 4, 5)
    with torch.no_grad():
        concatenation.W.copy_(torch.cat([additive.W_a, additive.U_a], dim=1))
        concatenation.v.copy_(additive.v_a)
    q, k = torch.randn(2, 6, 3), torch.randn(2, 7, 4)
    torch.testing.assert_close(concatenation(q, k), additive(q, k))


def test_scaled_dot_divides_by_the_root_of_the_larger_width() -> None:
    q, k = torch.randn(5, 9), torch.randn(4, 9)
    torch.testing.assert_close(ScaledDot(9, 9)(q, k), q @ k.T / 3)


def test_scores_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="equal width, found 3 and 4; use the score general"):
        score_named("dot", 3, 4)
    with pytest.raises(UsageError, match="did you mean 'additive'"):
        score_named("addative", 3, 3)


@pytest.mark.parametrize("name", sorted(SCORES))
def test_scores_by_gradcheck(name: str) -> None:
    score = score_named(name, 3, 3).double()
    q, k = (torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(lambda q, k, *p: score(q, k), (q, k, *score.parameters()))


# ---- the laws


HEADS = {
    "simple": lambda: Simple(4),
    "versatile": lambda: Versatile(4, 3, 5),
    "multi-head": lambda: MultiHead(4, 2, 4, 3),
}


@pytest.mark.parametrize("heads", sorted(HEADS))
@pytest.mark.parametrize("window", every(2, [None, 1, 3]))
def test_causal_attention_is_lawful(heads: str, window: int | None) -> None:
    layer = CausalSelfAttention(HEADS[heads](), window=window)
    passed = check_causal(layer)
    assert ("state size" in passed) is (window is not None)
    assert layer.receptive_field == window
    assert layer.state_grows is (window is None)


@pytest.mark.parametrize("score", ["dot", "general", "concatenation", "additive"])
def test_every_score_is_lawful_to_the_past_and_to_all(score: str) -> None:
    check_causal(CausalSelfAttention(Versatile(3), score, window=4))
    check_encoder(SelfAttention(MultiHead(4, 2), score))


@pytest.mark.parametrize("window", [5, 16])
def test_rotary_attention_is_lawful(window: int) -> None:
    check_causal(make(window))


def test_attention_to_all_is_lawful_even_without_a_real_position() -> None:
    layer = SelfAttention(MultiHead(6, 2, d_key=4, bias=True), rotary=Rotary())
    check_encoder(layer)
    y, _ = layer(torch.full((2, 3, 6), math.nan), torch.zeros(2, 3, dtype=torch.bool))
    assert y.isfinite().all()


class Reader(Conditional):
    def __init__(self) -> None:
        super().__init__()
        self.decoder = CrossAttention(MultiHead(4, 2, d_source=5))

    def condition(self, source: Tensor, mask: Tensor | None) -> Fixed:
        return self.decoder.condition(source, mask)


def test_attention_to_a_source_is_lawful() -> None:
    mask = torch.arange(6) < torch.tensor([[6], [2], [4]])
    check_conditional(Reader(), torch.randn(3, 6, 5), mask, torch.randn(3, 7, 4))
    with pytest.raises(UsageError, match="needs a source"):
        CrossAttention(MultiHead(4, 2))(torch.randn(1, 2, 4))


def test_what_stands_in_the_padding_of_a_source_changes_nothing() -> None:
    layer = CrossAttention(MultiHead(4, 2, d_source=5), score="additive")
    x, source = torch.randn(1, 3, 4), torch.randn(1, 6, 5)
    short, _ = layer(x, layer.condition(source[:, :4]))
    source[:, 4:] = math.nan
    long, _ = layer(x, layer.condition(source, torch.arange(6)[None] < 4))
    torch.testing.assert_close(long, short)


def test_heads_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="even width of queries and keys, found 3"):
        SelfAttention(MultiHead(6, 2), rotary=Rotary())
    with pytest.raises(UsageError, match="width 8 is not divisible by 5 heads"):
        MultiHead(8, n_heads=5)
    with pytest.raises(UsageError, match=r"an integer >= 1 \(the position itself\)"):
        CausalSelfAttention(Simple(3), window=0)


# ---- memory, chunks, rows


@pytest.mark.parametrize("window", [None, 7, 40])
@pytest.mark.parametrize("enabled", [True, False], ids=["gradients", "none"])
def test_any_pieces_give_the_same(window: int | None, enabled: bool) -> None:
    """Longer than the ring, wrapping around it, and across every growth of room."""
    layer, x = make(window), torch.randn(2, 150, 6).double()
    whole, _ = layer(x)
    generator = torch.Generator().manual_seed(1)
    for _ in range(6):
        state, ys, t = None, [], 0
        with torch.set_grad_enabled(enabled):
            while t < 150:
                T = int(torch.randint(1, 60, (), generator=generator))
                y, state = layer(x[:, t : t + T], state)
                ys.append(y)
                t += T
        torch.testing.assert_close(torch.cat(ys, 1), whole)


@pytest.mark.parametrize("window", [None, 8])
def test_a_long_chunk_is_cut_into_blocks_of_queries(window: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = make(window), torch.randn(2, 200, 6).double()
    _, state = layer(x[:, :3])
    wanted, _ = layer(x[:, 3:], state)
    monkeypatch.setattr(attention_file, "BLOCK", 1000)
    found, _ = layer(x[:, 3:], state)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("window", [None, 64])
def test_a_tick_without_gradients_writes_into_spare_room(window: int | None) -> None:
    layer, x = make(window), torch.randn(2, 200, 6).double()
    with torch.no_grad():
        _, state = layer(x[:, :5])
        moves = 0
        for t in range(5, 200):
            place = state.keys.data_ptr()
            _, state = layer(x[:, t : t + 1], state)
            moves += state.keys.data_ptr() != place
    room = state.keys.shape[2]
    assert (moves, room) == ((4, 8 * LEAST_ROOM) if window is None else (2, 64))


def test_two_continuations_share_memory_unless_cloned() -> None:
    layer, x = make(), torch.randn(1, 8, 6).double()
    with torch.no_grad():
        _, state = layer(x[:, :4])
        _, state = layer(x[:, 4:5], state)
        _, one = layer(x[:, 5:6], state)
        _, other = layer(x[:, 6:7], state)
        assert one.keys.data_ptr() == other.keys.data_ptr()
        _, apart = layer(x[:, 7:8], tree.clone(state))
        assert apart.keys.data_ptr() != one.keys.data_ptr()
    before = state.keys.clone()
    layer(x[:, 7:8], state)  # with gradients the state that is given stays as it is
    assert torch.equal(state.keys, before)


def test_a_state_with_a_graph_is_not_overwritten() -> None:
    layer, x = make(), torch.randn(1, 9, 6).double()
    _, state = layer(x[:, :4])
    y, state = layer(x[:, 4:6], state)
    with torch.no_grad():
        layer(x[:, 6:], state)
    y.sum().backward()  # would raise if a saved tensor had been written to


def test_states_cross_the_border_of_inference_mode() -> None:
    layer, x = make(), torch.randn(1, 9, 6).double()
    whole, _ = layer(x)
    with torch.inference_mode():
        _, state = layer(x[:, :4])
        _, state = layer(x[:, 4:5], state)
    with torch.no_grad():
        y, _ = layer(x[:, 5:], state)
    torch.testing.assert_close(y, whole[:, 5:])


@pytest.mark.parametrize("enabled", [True, False], ids=["gradients", "none"])
@pytest.mark.parametrize("window", [None, 6])
@pytest.mark.parametrize("rotary", [True, False])
def test_rows_at_different_positions_go_on_together(window: int | None, rotary: bool, enabled: bool) -> None:
    """Rows skip ticks by `state.where`; each then gives what it gives alone on the inputs that it took."""
    layer = make(window, rotary)
    taken: list[list[Tensor]] = [[], [], []]
    with torch.set_grad_enabled(enabled):
        state = None
        for t in range(9):
            x = torch.randn(3, 1, 6).double()
            before = tree.clone(state)
            _, state = layer(x, state)
            active = torch.tensor([True, t % 2 == 0, t % 4 != 1])
            if before is None or before.keys.shape != state.keys.shape:
                active[:] = True  # room has grown
            else:
                state = tree.where(active, state, before)
            for row in active.nonzero()[:, 0]:
                taken[row].append(x[row])
        assert len({len(inputs) for inputs in taken}) == 3
        state = tree.take(state, torch.tensor([2, 0, 1]))
        taken = [taken[2], taken[0], taken[1]]
        for T in (1, 4, 9, 1, 40, 2):
            x = torch.randn(3, T, 6).double()
            y, state = layer(x, state)
            for row, inputs in enumerate(taken):
                inputs.append(x[row])
                torch.testing.assert_close(y[row], layer(torch.cat(inputs)[None])[0][0, -T:])
    assert state.length.tolist() == [sum(map(len, inputs)) for inputs in taken]


def test_a_windowed_stream_goes_on_for_ever() -> None:
    layer, x = make(16), torch.randn(1, 3000, 6).double()
    whole, _ = layer(x)
    with torch.no_grad():
        state = None
        for t in range(0, 3000, 1):
            y, state = layer(x[:, t : t + 1], state)
            if t in (0, 15, 16, 17, 500, 2999):
                torch.testing.assert_close(y, whole[:, t : t + 1])
    assert state.keys.shape[2] == 16


def test_precision_may_change_between_chunks() -> None:
    layer, x = make().float(), torch.randn(1, 6, 6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        _, state = layer(x[:, :3])
        assert state.keys.dtype == torch.bfloat16
    y, _ = layer(x[:, 3:], state)
    torch.testing.assert_close(y, layer(x)[0][:, 3:], atol=0.05, rtol=0.05)


# ---- looking inside


@pytest.mark.parametrize("window", [None, 3])
def test_traced_weights_are_those_of_the_formula(window: int | None) -> None:
    layer, x = make(window, rotary=False), torch.randn(2, 7, 6).double()
    plain, _ = layer(x)
    with trace() as seen:
        y, state = layer(x[:, :5])
        rest, _ = layer(x[:, 5:], state)
    torch.testing.assert_close(torch.cat([y, rest], 1), plain)
    weights = seen["attention"][0]
    assert weights.shape == (2, 2, 5, 5)
    q, (k, v) = layer.heads.query(x[:, :5]), layer.heads.key_value(x[:, :5])
    e = torch.exp(q @ k.mT / 2)  # sqrt(4)
    for t in range(5):
        first = 0 if window is None else max(0, t - window + 1)
        wanted = torch.zeros(2, 2, 5).double()
        wanted[..., first : t + 1] = e[..., t, first : t + 1] / e[..., t, first : t + 1].sum(-1, keepdim=True)
        torch.testing.assert_close(weights[:, :, t], wanted)
    torch.testing.assert_close(layer.heads.join(weights @ v), plain[:, :5])
    later = seen["attention"][1]
    assert later.shape[2:] == (2, 7 if window is None else 4)
    torch.testing.assert_close(later.sum(-1), torch.ones(2, 2, 2).double())


def test_traced_weights_of_a_single_tick_stand_in_order() -> None:
    layer, x = make(3, rotary=False), torch.randn(1, 9, 6).double()
    with torch.no_grad():
        _, state = layer(x[:, :8])
        with trace() as seen:
            layer(x[:, 8:], state)
    with trace() as whole:
        layer(x)
    torch.testing.assert_close(seen["attention"][0][0, :, 0], whole["attention"][0][0, :, 8, 6:])


def test_traced_weights_to_all_leave_padding_out() -> None:
    layer, mask = SelfAttention(MultiHead(6, 2)), torch.tensor([[True, True, False]])
    with trace() as seen:
        layer(torch.randn(1, 3, 6), mask)
    (weights,) = seen["attention"]
    assert (weights[..., 2] == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 2, 3))


# ---- in linear memory


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("tile", [1, 4, 100])
@pytest.mark.parametrize(
    ("causal", "window", "ahead"),
    [(False, None, 0), (True, None, 0), (True, None, 5), (True, 3, 0), (True, 4, 5), (True, 9, 5)],
)
@pytest.mark.parametrize("padded", [False, True])
def test_tiles_give_what_torch_gives(tile: int, causal: bool, window: int | None, ahead: int, padded: bool) -> None:
    torch.manual_seed(1)
    T = 11
    S = T + ahead if causal else 14
    q, k, v = random(2, 3, T, 4), random(2, 3, S, 4), random(2, 3, S, 4)
    mask = torch.arange(S) < torch.tensor([[S], [max(1, S // 2)]]) if padded else None
    seen = band(T, S, ahead, window, q.device) if causal else torch.ones(T, S, dtype=torch.bool)
    seen = seen if mask is None else seen & mask[:, None, None]
    found = tiled_attention(q, k, v, causal=causal, window=window, ahead=ahead, mask=mask, tile=tile)
    wanted = attend(ScaledDot(4, 4), q, k, v, seen)
    real = seen.expand(2, 1, T, S).any(-1, keepdim=True)
    torch.testing.assert_close(found, wanted.where(real, 0.0))
    weights = torch.randn_like(found)
    for a, b in zip(
        torch.autograd.grad((found * weights).sum(), (q, k, v)),
        torch.autograd.grad((wanted * weights).where(real, 0.0).sum(), (q, k, v)),
    ):
        torch.testing.assert_close(a, b)


def test_tiles_by_gradcheck() -> None:
    q, k, v = random(1, 2, 5, 3), random(1, 2, 7, 3), random(1, 2, 7, 2)
    assert torch.autograd.gradcheck(lambda q, k, v: tiled_attention(q, k, v, causal=True, ahead=2, tile=2), (q, k, v))


def test_large_scores_do_not_overflow() -> None:
    q, k, v = (100 * torch.randn(1, 1, 40, 8) for _ in range(3))
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(tiled_attention(q, k, v, tile=8), wanted, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize(("m", "m_v"), [(3, 5), (5, 3), (4, 4)])
def test_widths_of_keys_and_values_may_differ(m: int, m_v: int) -> None:
    q, k, v = random(2, 2, 6, m), random(2, 2, 6, m), random(2, 2, 6, m_v)
    wanted = (0.3 * q @ k.mT).softmax(-1) @ v
    torch.testing.assert_close(fast(q, k, v, 0.3), wanted)


def test_causal_attention_by_gradcheck() -> None:
    q, k, v = random(1, 2, 4, 2), random(1, 2, 6, 2), random(1, 2, 6, 3)
    score = ScaledDot(2, 2)
    for window in (None, 3):
        assert torch.autograd.gradcheck(lambda q, k, v: attend_causally(score, q, k, v, 2, window), (q, k, v))


@pytest.mark.parametrize("window", [None, 4, 5, 9])
@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("rows", [1, 2])
def test_a_history_that_was_cut_by_hand_can_still_be_gone_back(window: int | None, steps: int, rows: int) -> None:
    """`leaf.detach()` shares memory with what attention has saved; a tick must not write there."""
    torch.manual_seed(0)
    layer = CausalSelfAttention(MultiHead(6, n_heads=2), window=window).double()
    x = torch.randn(rows, 12, 6).double()
    wanted: Tensor | None = None
    for ticks in (0, 3):
        entry = x.clone().requires_grad_()
        first, state = layer(entry[:, :4])
        second, state = layer(entry[:, 4 : 4 + steps], state)
        with torch.no_grad():
            alias = type(state)(*(leaf.detach() for leaf in state))
            for t in range(ticks):
                _, alias = layer(x[:, t : t + 1], alias)
        (g,) = torch.autograd.grad(first.square().sum() + second.square().sum(), entry)
        wanted = g if wanted is None else wanted
        torch.testing.assert_close(g, wanted)


def test_a_first_chunk_as_long_as_the_window_is_not_overwritten() -> None:
    torch.manual_seed(0)
    layer = CausalSelfAttention(MultiHead(6, n_heads=2), window=4)
    x = torch.randn(1, 4, 6, requires_grad=True)
    y, state = layer(x)
    (wanted,) = torch.autograd.grad(y.square().sum(), x, retain_graph=True)
    with torch.no_grad():
        layer(torch.randn(1, 1, 6), type(state)(*(leaf.detach() for leaf in state)))
    torch.testing.assert_close(torch.autograd.grad(y.square().sum(), x)[0], wanted)
