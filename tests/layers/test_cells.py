"""Cells: their laws, their sizes, and what a user meets who makes a mistake or a new one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from unrolled.core.errors import UsageError
from unrolled.layers.recurrent.cells import GRU, LSTM, BookGRU, Cell, Elman, Jordan, Memoryless, OutputFeedback
from unrolled.layers.recurrent.deer import deer
from unrolled.layers.recurrent.fused import fused
from unrolled.testing import check_cell, check_scan


def test_every_cell_obeys_the_laws(cell: Cell) -> None:
    check_cell(cell, d_in=cell.input_size)


def test_sizes_are_as_stated_and_leading_axes_are_free(cell: Cell) -> None:
    x, h = torch.randn(2, 5, 3).double(), torch.randn(2, 5, 6).double()
    after = cell(x, h)
    assert after.shape == (2, 5, cell.state_size)
    assert cell.output(after).shape == (2, 5, cell.output_size)
    torch.testing.assert_close(after[:, 3], cell(x[:, 3], h[:, 3]))


class Decay(Cell):
    def __init__(self, d: int) -> None:
        super().__init__(d, d)
        self.rate = nn.Parameter(torch.full((d,), 0.3))

    def forward(self, x_t: Tensor, h: Tensor) -> Tensor:
        return h - self.rate * (h - x_t).tanh()


def test_a_new_cell_runs_under_every_scan() -> None:
    check_cell(Decay(3), d_in=3)
    for scan in (fused, deer):
        check_scan(scan, Decay(3))


def test_gates_are_between_their_bounds_and_make_the_state() -> None:
    cell, x, h = GRU(3, 4), torch.randn(2, 3), torch.randn(2, 4)
    gates = cell.gates(x, h)
    assert list(gates) == ["reset", "update", "candidate"]
    assert all(g.min() > 0 and g.max() < 1 for g in (gates["reset"], gates["update"]))
    z, n = gates["update"], gates["candidate"]
    torch.testing.assert_close(cell(x, h), torch.lerp(n, h, z))
    assert list(LSTM(3, 4).gates(x, torch.randn(2, 8))) == ["input", "forget", "candidate", "output"]


def test_a_feedback_cell_gives_logits_and_feeds_back_probabilities() -> None:
    cell = Jordan(3, 5, 4)
    z = torch.randn(2, 4)
    assert torch.equal(cell.output(z), z)
    shifted = cell(torch.zeros(2, 3), z + 10.0)  # softmax does not see a constant
    torch.testing.assert_close(shifted, cell(torch.zeros(2, 3), z))


def test_memoryless_forgets() -> None:
    cell, x = Memoryless(3, 4), torch.randn(2, 3)
    assert torch.equal(cell(x, torch.zeros(2, 4)), cell(x, torch.randn(2, 4)))


def test_mistakes_are_answered() -> None:
    with pytest.raises(UsageError, match="did you mean 'tanh'"):
        Elman(3, 4, "tahn")
    with pytest.raises(UsageError, match="widths agree"):
        OutputFeedback(3, 4, 5, transform="identity")


@pytest.mark.parametrize("form", [LSTM, GRU, BookGRU])
def test_a_cell_that_begins_with_long_memories_keeps_its_state_for_about_so_many_steps(form):
    cell = form(2, 500).remember(100)
    for weight in (cell.weight_ih, cell.weight_hh):
        weight.detach().zero_()
    keeps = {LSTM: "forget", GRU: "update", BookGRU: "update"}[form]
    kept = cell.gates(torch.zeros(1, 2), torch.zeros(1, cell.state_size))[keeps][0].double()
    kept = 1 - kept if form is BookGRU else kept
    steps = kept / (1 - kept)  # u of sigmoid(log u)
    assert 1 <= steps.min() < 10 and 90 < steps.max() <= 99 and 45 < steps.mean() < 55


def test_the_input_gate_of_an_lstm_is_the_opposite_of_its_long_memory():
    cell = LSTM(2, 5).remember(50)
    i, f = (cell.bias_ih + cell.bias_hh).detach().chunk(4)[:2]
    torch.testing.assert_close(i, -f)
