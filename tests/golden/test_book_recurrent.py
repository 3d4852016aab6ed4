"""The recurrent family against a few lines written from the page of the book, and against results known exactly."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unrolled.core.compose import Serial
from unrolled.layers.recurrent.cells import GRU, BookGRU, Elman, LinearUnit, OutputFeedback
from unrolled.layers.recurrent.fused import fused
from unrolled.layers.recurrent.recurrent import Forced, Recurrent
from unrolled.layers.recurrent.scan import loop


def page_gru(h: Tensor, x: Tensor, W: dict[str, Tensor]) -> Tensor:
    """Eqs (7.18)-(7.19) for one column vector h and x, symbol by symbol."""
    g_r = torch.sigmoid(W["rh"] @ h + W["rx"] @ x + W["br"])
    g_u = torch.sigmoid(W["uh"] @ h + W["ux"] @ x + W["bu"])
    h_tilde = torch.tanh(W["hh"] @ (g_r * h) + W["hx"] @ x + W["bh"])
    return (1 - g_u) * h + g_u * h_tilde


def test_the_book_gru_is_the_page() -> None:
    torch.manual_seed(0)
    cell = BookGRU(3, 4).double()
    W = {}
    for name, weight in (("h", cell.weight_hh), ("x", cell.weight_ih)):
        W["r" + name], W["u" + name], W["h" + name] = weight.chunk(3)
    assert cell.bias is not None
    W["br"], W["bu"], W["bh"] = cell.bias.chunk(3)
    x, h = torch.randn(1, 9, 3).double(), torch.randn(1, 4).double()
    for scan in (loop, fused):
        y, _ = scan(cell, x, h)
        column = h[0]
        for t in range(9):
            column = page_gru(column, x[0, t], W)
            torch.testing.assert_close(y[0, t], column)


def test_the_two_grus_differ_in_where_the_reset_acts_and_in_the_meaning_of_the_update() -> None:
    """With the recurrent candidate weights at zero the place of the reset does not matter: then z = 1 - u."""
    book, other = BookGRU(3, 4).double(), GRU(3, 4).double()
    assert book.bias is not None
    assert other.bias_ih is not None
    assert other.bias_hh is not None
    sign = torch.ones(12, 1).double()
    sign[4:8] = -1  # z = sigmoid(-a) = 1 - sigmoid(a) = 1 - u
    x, h = torch.randn(2, 6, 3).double(), torch.randn(2, 4).double()
    with torch.no_grad():
        other.weight_ih.copy_(sign * book.weight_ih)
        other.weight_hh.copy_(sign * book.weight_hh)
        other.bias_ih.copy_(sign[:, 0] * book.bias)
        other.bias_hh.zero_()
        assert not torch.allclose(loop(book, x, h)[0], loop(other, x, h)[0])
        book.weight_hh[8:] = 0
        other.weight_hh[8:] = 0
        torch.testing.assert_close(loop(book, x, h)[0], loop(other, x, h)[0])


def test_output_feedback_is_equation_7_3() -> None:
    """h = S_h(W_hh h' + W_hx (x + T(y')) + b_h), y = S_y(W_yh h + b_y), run freely and with given y'."""
    torch.manual_seed(0)
    cell = OutputFeedback(3, 5, 4).double()
    W_hh, W_hx, b_h = cell.inner.weight_hh, cell.inner.weight_ih, cell.inner.bias
    x, truth = torch.randn(8, 3).double(), torch.randn(8, 4).softmax(-1).double()
    free, _ = Recurrent(cell)(x[None])
    forced, _ = Forced(cell)(torch.cat([x, truth], dim=-1)[None])
    for given, result in ((None, free), (truth, forced)):
        h, y = torch.zeros(5).double(), torch.full((4,), 0.25).double()  # softmax(0)
        for t in range(8):
            y = y if given is None else given[t]
            h = torch.tanh(W_hh @ h + W_hx @ (x[t] + cell.weight_t @ y) + b_h)
            y = torch.softmax(cell.weight_yh @ h + cell.bias_y, dim=0)
            torch.testing.assert_close(result[0, t].softmax(0), y)


def test_the_toy_network_of_the_book_has_748_parameters() -> None:
    """p = q = 8, m = 20: 20 x 20 + 20 x 8 + 20 + 8 x 20 + 8, and its output is a probability vector."""
    model = Serial(Recurrent(Elman(8, 20)), nn.Linear(20, 8), nn.Softmax(-1))
    assert sum(p.numel() for p in model.parameters()) == 748
    y, _ = model(torch.eye(8)[None, [7, 4, 2]])
    assert y.shape == (1, 3, 8)
    torch.testing.assert_close(y.sum(-1), torch.ones(1, 3))


def test_a_linear_unit_with_a_shift_matrix_is_an_autoregressive_model() -> None:
    """h = (x_t, x_{t-1}, ..., x_{t-s+1}), so that y = w^T h + b is AR(s), to the last bit."""
    s, w, b = 4, torch.tensor([0.5, -0.25, 2.0, 0.125]), 0.75
    cell = LinearUnit(1, s)
    with torch.no_grad():
        cell.weight_hh.copy_(torch.diag(torch.ones(s - 1), -1))
        cell.weight_ih.copy_(torch.eye(s)[:, :1])
    x = torch.randint(-8, 8, (1, 30, 1)).float()
    y = Recurrent(cell)(x)[0] @ w + b  # [1, T]
    past = torch.cat([torch.zeros(s - 1), x.flatten()])
    for t in range(30):
        window = past[t : t + s].flip(0)  # x_t, x_{t-1}, ...
        assert y[0, t] == (w * window).sum() + b


def test_fibonacci_runs_by_itself() -> None:
    """AR(3) with (w_2, w_1, w_0, b) = (0, 1, 1, 0) continues 1, 1, 2 with 3, 5, 8, ..."""
    cell = LinearUnit(1, 3)
    with torch.no_grad():
        cell.weight_hh.copy_(torch.diag(torch.ones(2), -1))
        cell.weight_ih.copy_(torch.eye(3)[:, :1])
    layer, seen = Recurrent(cell), [1.0, 1.0, 2.0]
    with torch.no_grad():
        h, state = layer(torch.tensor(seen).view(1, 3, 1))
        for _ in range(7):
            seen.append(float(h[0, -1] @ torch.tensor([1.0, 1.0, 0.0])))
            h, state = layer(torch.tensor(seen[-1:]).view(1, 1, 1), state)
    assert seen == [1, 1, 2, 3, 5, 8, 13, 21, 34, 55]
