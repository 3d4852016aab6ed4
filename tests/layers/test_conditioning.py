"""A condition runs beside the input of any causal body, in chunks and tick by tick."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.core.causal import begin
from unrolled.core.compose import Serial
from unrolled.core.errors import UsageError
from unrolled.layers.parts.assembled import Decoder
from unrolled.layers.parts.conditioning import Held, Told
from unrolled.layers.parts.embedding import Table
from unrolled.layers.recurrent.cells import GRU
from unrolled.layers.recurrent.recurrent import Recurrent

HOP, B, C = 3, 2, 4


def model() -> Told:
    torch.manual_seed(0)
    body = Serial(Held(5, HOP), Recurrent(GRU(3 + 5, 6)))
    return Told(Decoder(Table(7, 3), body, nn.Linear(6, 7)), C, 5).eval()


def test_frames_are_held_as_the_equation_says() -> None:
    told, c = model(), torch.randn(B, 4, C)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    held = next(iter(told.decoder.body))
    state = told.condition(c, mask)[0]
    x = torch.zeros(B, 11, 3)
    e = told.outer(torch.tanh(told.inner(c)))
    for row, last in enumerate((3, 1)):
        wanted = torch.stack([e[row, min(t // HOP, last)] for t in range(11)])
        assert torch.allclose(held(x, state)[0][row, :, 3:], wanted)


@pytest.mark.parametrize("frames", [1, 4])
def test_chunks_and_gradients(frames: int) -> None:
    told, c, x = model(), torch.randn(B, frames, C, requires_grad=True), torch.randint(0, 7, (B, 10))
    decoder, state = begin(told, c)
    whole, _ = decoder(x, state)
    pieces, state = [], told.condition(c)
    for cut in x.split([1, 4, 5], dim=1):
        y, state = decoder(cut, state)
        pieces.append(y)
    assert torch.allclose(torch.cat(pieces, 1), whole, atol=1e-6)
    whole[:, :3].sum().backward()
    assert c.grad is not None
    assert bool((c.grad[:, 0] != 0).all())
    assert bool((c.grad[:, 1:] == 0).all())  # later frames reach later ticks alone


def test_without_a_condition_there_are_zeros_and_a_wrong_one_is_refused() -> None:
    held = Held(2, HOP)
    assert torch.equal(held(torch.ones(1, 2, 1), None)[0], torch.tensor([[[1.0, 0, 0]] * 2]))
    with pytest.raises(UsageError, match="expected a condition of shape"):
        held.start(torch.zeros(1, 2, 3))
    assert isinstance(model().inner, nn.Linear)
