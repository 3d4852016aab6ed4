"""Gradients along time: the linear cell exactly, what carries and what does not, and the share before T_0."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from unrolled.core.causal import Causal
from unrolled.core.compose import Serial
from unrolled.core.errors import UsageError
from unrolled.core.state import Fixed
from unrolled.inspect import gradients
from unrolled.inspect.gradients import fit_rate, spectral_radii, state_gradients
from unrolled.inspect.tools.dependence import by_gradient
from unrolled.inspect.tools.opened import Opened, precise
from unrolled.layers.recurrent.cells import GRU, LSTM, Elman, LinearUnit, OutputFeedback
from unrolled.layers.recurrent.recurrent import Recurrent

T, D, N = 12, 3, 5


def linear(d_in: int, W: Tensor) -> Recurrent:
    cell = LinearUnit(d_in, len(W)).double()
    with torch.no_grad():
        cell.weight_hh.copy_(W)
    return Recurrent(cell)


def opened(body: Causal, d_in: int, length: int = T) -> Opened:
    torch.manual_seed(1)
    return Opened(torch.randn(1, length, d_in, dtype=torch.float64, requires_grad=True), body, None)


@pytest.mark.parametrize("alpha", [0.5, 0.9, 1.0, 1.3, -0.7])
def test_a_scalar_linear_cell_gives_the_powers_of_alpha(alpha):
    body = linear(1, torch.tensor([[alpha]], dtype=torch.float64))
    with torch.no_grad():
        body.cell.weight_ih.fill_(1.0)  # h_t = alpha h_{t-1} + x_t
    found = opened(body, 1)
    norms = state_gradients(found, T, lambda y: y[:, -1].sum())
    powers = torch.tensor([abs(alpha) ** (T - 1 - t) for t in range(T)], dtype=torch.float64)
    torch.testing.assert_close(norms, powers[:-1], rtol=1e-13, atol=0)
    torch.testing.assert_close(by_gradient(found, [T - 1], 1)[0], powers, rtol=1e-13, atol=0)  # d h_T / d x_t
    assert fit_rate(norms).rate == pytest.approx(abs(alpha), rel=1e-9)


def test_a_linear_cell_gives_the_powers_of_its_matrix():
    """Eq. (7.12): zeta_t = (W^T)^(T-t) zeta_T, behind a head V with loss c . y_T: zeta_T = V^T c."""
    torch.manual_seed(0)
    W, c = torch.randn(N, N, dtype=torch.float64) * 0.4, torch.randn(2, dtype=torch.float64)
    body, head = linear(D, W), nn.Linear(N, 2).double()
    norms = state_gradients(opened(Serial(body, head), D), T, lambda y: (y[0, -1] * c).sum())
    zeta = head.weight.detach().T @ c
    for t in reversed(range(T - 1)):
        zeta = W.T @ zeta
        torch.testing.assert_close(norms[t], zeta.norm(), rtol=1e-12, atol=0)


def test_inputs_and_outputs_of_a_linear_cell():
    torch.manual_seed(0)
    W = torch.randn(N, N, dtype=torch.float64) * 0.4
    body = linear(D, W)
    found = by_gradient(opened(body, D), [3, T - 1], directions=N)  # as many as outputs: exact
    for row, at in enumerate((3, T - 1)):
        for t in range(T):
            true = torch.linalg.matrix_power(W, at - t) @ body.cell.weight_ih if t <= at else torch.zeros(N, D)
            torch.testing.assert_close(found[row, t], true.detach().double().norm(), rtol=1e-12, atol=0)


def test_tiny_norms_are_not_rounded_to_zero():
    norms = state_gradients(opened(linear(1, torch.tensor([[0.01]])), 1, 140), 140, lambda y: y[:, -1].sum())
    assert norms[0] > 0  # 1e-278, whose square is no number
    assert fit_rate(norms).rate == pytest.approx(0.01)


@pytest.mark.parametrize("cell", [Elman, GRU, LSTM])
def test_a_state_is_followed_through_its_whole_cell(cell):
    """Against autograd on the cell itself, run by hand."""
    torch.manual_seed(2)
    body = Recurrent(cell(D, N).double())
    found = opened(body, D)
    norms = state_gradients(found, T, lambda y: y[:, -1].square().sum())
    h = torch.zeros(1, body.cell.state_size, dtype=torch.float64, requires_grad=True)
    states = []
    for t in range(T):
        h = body.cell(found.vectors[:, t], h)
        states.append(h)
    true = torch.autograd.grad(body.cell.output(h).square().sum(), states[:-1])
    torch.testing.assert_close(norms, torch.stack([g.norm() for g in true]), rtol=1e-10, atol=0)


def test_constants_of_a_state_do_not_count():
    class Leaky(Causal):
        """h = a h' + x, where a, made of the first input, rides along in the state as a constant."""

        def forward(self, x, state=None):
            fixed, h = (Fixed(0.5 + 0 * x[:, 0]), x[:, 0] * 0) if state is None else state
            h = fixed.tree * h + x[:, 0]
            return h[:, None], (fixed, h)

    norms = state_gradients(opened(Leaky(), 1, 5), 5, lambda y: y[:, -1].sum())
    assert norms.tolist() == [0.5**4, 0.5**3, 0.5**2, 0.5]


def test_verdicts():
    steps = torch.arange(40, 0, -1, dtype=torch.float64)
    assert [fit_rate(rate**steps).verdict for rate in (0.8, 1.0, 0.99, 1.2)] == [
        "vanishes", "is carried", "is carried", "explodes",
    ]  # fmt: skip
    assert fit_rate(torch.zeros(9)) == (None, "no memory")
    assert fit_rate(torch.tensor([0.0, 0.0, 0.5])) == (None, "too short to tell")


def test_spectral_radii():
    W = torch.diag(torch.tensor([0.3, -1.5, 0.2]))
    assert spectral_radii(Serial(linear(D, W))) == pytest.approx({"layers.0.cell": 1.5})
    gru = GRU(D, 4)
    with torch.no_grad():
        gru.weight_hh.copy_(torch.cat([k * torch.eye(4) for k in (1, 2, 3)]))
    assert spectral_radii(gru) == pytest.approx({"cell reset": 1, "cell update": 2, "cell candidate": 3})
    assert list(spectral_radii(Recurrent(OutputFeedback(D, 4, 2)))) == ["cell.inner"]
    assert spectral_radii(Recurrent(LSTM(D, 4, d_proj=3))) == {}  # no square matrix anywhere


def test_of_a_run(small):
    run = small("elman", {"d_state": 8})
    answer = run.inspect("gradients", "a state is", {"t_0": 4})
    states = answer.arrays["state"]
    assert (answer.numbers["position"], answer.numbers["target"]) == (10, "<stop>")
    assert (len(states), len(answer.arrays["input"])) == (10, 11)
    assert answer.numbers["share_before"] == pytest.approx(float(states[:4].sum() / states.sum()))
    assert answer.numbers["verdict"] == "vanishes"
    assert answer.numbers["half_after"] == pytest.approx(math.log(0.5) / math.log(answer.numbers["rate"]))
    assert answer.pictures[0].log_y
    assert len(run.inspect("gradients", "a state is", {"at": 5}).arrays["state"]) == 5


def test_gradients_of_a_target_are_those_of_the_tasks_loss(small):
    """The run's own model, its loss by hand."""
    run = small("elman", {"d_state": 8})
    answer = run.inspect("gradients", "a state", {"at": 3})
    model = precise(run.model)
    batch, _ = run.task.example("a state")
    cell = model.body.layers[0].cell
    h, states = torch.zeros(1, 8, dtype=torch.float64, requires_grad=True), []
    for x in model.embedding(batch.x)[0, :4]:
        h = cell(x[None], h)
        states.append(h)
    loss = nn.functional.cross_entropy(model.head(h[None])[0], batch.y[:, 3])
    true = torch.stack([g.norm() for g in torch.autograd.grad(loss, states[:-1])])
    torch.testing.assert_close(answer.arrays["state"], true, rtol=1e-9, atol=0)


def test_what_has_no_memory_and_what_counts(small, planted, around):
    assert small("memoryless", {"d_state": 4}).inspect("gradients", "value").numbers["verdict"] == "no memory"
    assert "counts" in gradients.applies(small("ngram"))

    class Cut(Causal):
        def forward(self, x, state=None):
            return x.detach(), ()

    with pytest.raises(UsageError, match="no gradients"):
        planted(around(Cut(), 3, 3)).inspect("gradients", "value")
    with pytest.raises(UsageError, match="positions 0 to 5"):
        small("elman", {"d_state": 8}).inspect("gradients", "value", {"at": 6})
