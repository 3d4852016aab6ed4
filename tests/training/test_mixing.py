"""Scheduled mixing where a source starts the decoder."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal, Conditional, begin
from unrolled.core.state import Fixed, State
from unrolled.training.mixing import mixed

V, D = 7, 5


class Decoder(Causal):
    """h_t = tanh(E x_t + U h_{t-1} + c), y_t = W h_t, with a constant c that a source gave."""

    def __init__(self) -> None:
        super().__init__()
        self.E, self.U, self.W = nn.Embedding(V, D), nn.Linear(D, D), nn.Linear(D, V)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        assert state is not None
        fixed, h = state
        outputs = []
        for t in range(x.shape[1]):
            h = torch.tanh(self.E(x[:, t]) + self.U(h) + fixed.tree)  # [B, D]
            outputs.append(self.W(h))
        return torch.stack(outputs, dim=1), (fixed, h)  # [B, T, V]


class Tiny(Conditional):
    """c is the mean of the source's real tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder: Decoder = Decoder()
        self.table = nn.Embedding(V, D)

    def condition(self, source: Tensor, mask: Tensor | None) -> State:
        assert mask is not None
        real = mask[:, :, None].float()
        c = (self.table(source) * real).sum(1) / real.sum(1)  # [B, D]
        return Fixed(c), torch.zeros_like(c)


@pytest.fixture
def model() -> Tiny:
    torch.manual_seed(0)
    return Tiny()


X = torch.tensor([[2, 4, 5, 6, 3], [2, 6, 4, 4, 5], [2, 3, 3, 6, 6]])
SOURCE = torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0], [1, 0, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]], dtype=torch.bool)


def test_with_a_perfect_teacher_it_is_the_plain_decoder(model: Tiny) -> None:
    decoder, state = begin(model, SOURCE, MASK)
    y, last = mixed(decoder, X, state, 1.0, seed=3)
    wanted, after = decoder(X, state)
    torch.testing.assert_close(y, wanted)
    torch.testing.assert_close((last[0].tree, last[1]), (after[0].tree, after[1]))


def test_own_choices_are_mixed_in_and_gradients_reach_the_source(model: Tiny) -> None:
    decoder, state = begin(model, SOURCE, MASK)
    truth, _ = decoder(X, state)
    y, _ = mixed(decoder, X, state, 0.3, seed=3)
    torch.testing.assert_close(y[:, 0], truth[:, 0])  # the first input is <start>, which nobody chooses
    assert not torch.allclose(y[:, 1:], truth[:, 1:])
    y.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and bool(parameter.grad.abs().sum() > 0), name
    padding = model.table.weight.grad[0]  # type: ignore[index]
    assert not padding.any(), "padding of the source took part"


def test_padding_of_the_source_changes_nothing(model: Tiny) -> None:
    other = torch.where(MASK, SOURCE, 6)
    outputs = [mixed(*begin_with(model, source), 0.3, seed=5)[0] for source in (SOURCE, other)]
    torch.testing.assert_close(*outputs)


def begin_with(model: Tiny, source: Tensor) -> tuple[Causal, Tensor, State]:
    decoder, state = begin(model, source, MASK)
    return decoder, X, state


def test_rows_are_fed_what_they_chose(model: Tiny) -> None:
    """At teacher = 0 the outputs are those of the decoder that reads its own choices."""
    decoder, state = begin(model, SOURCE, MASK)
    fed: list[Tensor] = []
    original = decoder.forward
    decoder.forward = lambda x, state: (fed.append(x), original(x, state))[1]  # type: ignore[method-assign]
    y, _ = mixed(decoder, X, state, 0.0, seed=1)
    decoder.forward = original  # type: ignore[method-assign]
    wanted, _ = decoder(torch.cat(fed, dim=1), state)
    torch.testing.assert_close(y, wanted)
    assert torch.equal(fed[0], X[:, :1])
