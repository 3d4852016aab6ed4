"""Recurrent layers, stacks, both directions, teacher forcing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from unrolled.core.errors import UsageError
from unrolled.core.trace import trace
from unrolled.layers.recurrent.cells import GRU, LSTM, BookGRU, Cell, Elman, Feedback, Jordan, OutputFeedback
from unrolled.layers.recurrent.deer import deer
from unrolled.layers.recurrent.fused import fused
from unrolled.layers.recurrent.recurrent import Bidirectional, BidirectionalStack, Forced, Recurrent, Stacked, reverse
from unrolled.layers.recurrent.scan import Scan, loop
from unrolled.testing import check_causal, check_encoder


def test_every_cell_is_a_lawful_layer(cell: Cell) -> None:
    check_causal(Recurrent(cell), d_in=3)


@pytest.mark.long
@pytest.mark.parametrize("scan", [loop, deer], ids=["loop", "deer"])
def test_other_scans_are_lawful_too(scan: Scan) -> None:
    check_causal(Recurrent(GRU(3, 4), scan, initial="learned"), d_in=3)


def test_a_stack_is_lawful_and_its_state_is_a_tuple() -> None:
    stack = Stacked([Recurrent(LSTM(3, 4)), Recurrent(GRU(4, 5), initial="learned"), Recurrent(Elman(5, 2))])
    check_causal(stack, d_in=3)
    y, state = stack(torch.randn(2, 6, 3))
    assert y.shape == (2, 6, stack.d_out)
    assert [tuple(s.shape) for s in state] == [(2, 8), (2, 5), (2, 2)]


def test_dropout_stands_between_layers_and_not_after_the_last() -> None:
    stack = Stacked([Recurrent(GRU(3, 64)), Recurrent(GRU(64, 64))], dropout=0.5)
    x = torch.randn(2, 6, 3)
    first, second = stack.layers
    assert not torch.equal(stack(x)[0], stack(x)[0])
    assert not (stack(x)[0] == 0).any()
    alone = Stacked([first], dropout=0.5)
    assert torch.equal(alone(x)[0], first(x)[0])
    stack.eval()
    assert torch.equal(stack(x)[0], second(first(x)[0])[0])


def test_the_initial_state_is_learned() -> None:
    layer = Recurrent(GRU(3, 4), initial="learned")
    x = torch.randn(2, 5, 3)
    layer(x)[0].sum().backward()
    assert layer.h_0 is not None
    assert layer.h_0.grad is not None
    assert layer.h_0.grad.abs().min() > 0
    torch.testing.assert_close(layer(x)[0], layer(x, torch.zeros(2, 4))[0])
    with pytest.raises(UsageError, match="'zero' or 'learned'"):
        Recurrent(GRU(3, 4), initial="random")


def test_tracing_offers_states_and_gates() -> None:
    layer, x = Recurrent(LSTM(3, 4)), torch.randn(2, 5, 3)
    with trace() as seen:
        _, state = layer(x)
    (states,), (gates,) = seen["state"], seen["gates"]
    torch.testing.assert_close(states[:, -1], state)
    assert {name: tuple(gate.shape) for name, gate in gates.items()} == dict.fromkeys(
        ("input", "forget", "candidate", "output"), (2, 5, 4)
    )
    c = states[..., 4:]
    before = torch.cat([torch.zeros(2, 1, 4), c[:, :-1]], dim=1)
    torch.testing.assert_close(c, gates["forget"] * before + gates["input"] * gates["candidate"])


# ---- both directions


def both(kind: type[Cell] = GRU) -> Bidirectional:
    torch.manual_seed(5)
    return Bidirectional(Recurrent(kind(3, 4)), Recurrent(kind(3, 5)))


def padded(lengths: list[int]) -> tuple[Tensor, Tensor]:
    S = max(lengths) + 1
    return torch.randn(len(lengths), S, 3), torch.arange(S) < torch.tensor(lengths)[:, None]


def test_bidirectional_layers_are_lawful_encoders() -> None:
    check_encoder(both(), d_in=3)
    stack = BidirectionalStack([both(), Bidirectional(Recurrent(LSTM(9, 4)), Recurrent(LSTM(9, 2)))])
    check_encoder(stack, d_in=3)
    assert stack.d_out == 6


def test_a_row_is_reversed_within_its_own_length() -> None:
    x = torch.arange(1.0, 9).view(2, 4, 1)
    mask = torch.tensor([[True, True, True, False], [True, True, False, False]])
    assert reverse(x, mask).squeeze(-1).tolist() == [[3, 2, 1, 4], [6, 5, 7, 8]]


def test_padded_rows_give_what_each_gives_alone() -> None:
    layer, (x, mask) = both(), padded([6, 1, 4, 0])
    y, out = layer(x, mask)
    assert out is mask
    for row, n in enumerate([6, 1, 4, 0]):
        assert (y[row, n:] == 0).all()
        if n:
            alone = torch.cat([layer.ahead(x[row : row + 1, :n])[0],
                               layer.back(x[row : row + 1, :n].flip(1))[0].flip(1)], dim=-1)  # fmt: skip
            torch.testing.assert_close(y[row, :n], alone[0])


@pytest.mark.parametrize("junk", [float("nan"), float("inf"), 1e30])
def test_junk_in_the_padding_changes_nothing(junk: float) -> None:
    layer, (x, mask) = BidirectionalStack([both(LSTM)]), padded([6, 2])
    clean = x.clone().requires_grad_()
    dirty = torch.where(mask[..., None], x, junk).requires_grad_()
    results = []
    for given in (clean, dirty):
        y, _ = layer(given, mask)
        layer.zero_grad()
        y.square().sum().backward()
        results.append([y, given.grad, *[p.grad.clone() for p in layer.parameters()]])
    for a, b in zip(*results, strict=True):
        assert torch.equal(a, b)


def test_left_padding_is_refused() -> None:
    with pytest.raises(UsageError, match="right padding"):
        both()(torch.randn(1, 3, 3), torch.tensor([[False, True, True]]))


# ---- teacher forcing


@pytest.mark.parametrize("cell", [Jordan(3, 6, 4), OutputFeedback(3, 6, 4)], ids=["jordan", "feedback"])
def test_forced_with_its_own_outputs_it_is_the_free_running_cell(cell: Feedback) -> None:
    x = torch.randn(2, 7, 3)
    free, _ = Recurrent(cell)(x)  # logits [B, T, q]
    y = cell.output_activation(free)
    first = cell.output_activation(torch.zeros(2, 1, 4))
    forced, _ = Forced(cell)(torch.cat([x, torch.cat([first, y[:, :-1]], dim=1)], dim=-1))
    torch.testing.assert_close(forced, free)


def test_forced_layers_are_lawful() -> None:
    jordan, feedback = Forced(Jordan(3, 6, 4)), Forced(OutputFeedback(3, 6, 4), scan=fused)
    assert jordan.receptive_field == 1
    assert feedback.receptive_field is None
    for layer in (jordan, feedback):
        check_causal(layer, d_in=7)


@pytest.mark.parametrize("kind", [LSTM, GRU, Elman])
def test_under_autocast_the_recurrence_keeps_its_precision(kind: type) -> None:
    layer = Recurrent(kind(3, 4))
    x = torch.randn(2, 6, 3)
    plain, state = layer(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, last = layer(x)
        rounded, _ = layer(x.bfloat16())
    assert y.dtype == last.dtype == rounded.dtype == torch.float32
    torch.testing.assert_close(y, plain)
    torch.testing.assert_close(last, state)


@pytest.mark.parametrize("kind", [Elman, GRU, BookGRU, LSTM])
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("shape", [(2, 5, 3), (1, 1, 3)])
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
def test_a_layer_can_be_traced(kind: type, enabled: bool, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    layer, x, other = Recurrent(kind(3, 4)).eval(), torch.randn(shape), torch.randn(shape)
    with torch.set_grad_enabled(enabled):
        traced = torch.jit.trace(layer, (x,))
        torch.testing.assert_close(traced(other), layer(other))


@pytest.mark.parametrize("kind", [Elman, GRU, LSTM])
def test_a_layer_can_be_exported(kind: type) -> None:
    torch.manual_seed(0)
    layer, x, other = Recurrent(kind(3, 4)).eval(), torch.randn(2, 5, 3), torch.randn(2, 5, 3)
    with torch.no_grad():
        exported = torch.export.export(layer, (x,)).module()
        torch.testing.assert_close(exported(other), layer(other))
