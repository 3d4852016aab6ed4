"""A cell that attends: the equations of the page, and the quick way against the plain one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.core.errors import UsageError
from unrolled.layers.attention import attention_cell as module
from unrolled.layers.attention.attention_cell import Aligned
from unrolled.layers.attention.scores import SCORES
from unrolled.layers.recurrent.cells import GRU, LSTM, BookGRU, Elman

D, DS, N, B, S, T = 3, 4, 5, 2, 6, 7
CELLS = {
    "elman": lambda: Elman(D + DS, N),
    "lstm": lambda: LSTM(D + DS, N),
    "projected lstm": lambda: LSTM(D + DS, N, d_proj=3, bias=False),
    "gru": lambda: GRU(D + DS, N),
    "gru without bias": lambda: GRU(D + DS, N, bias=False),
    "book's gru": lambda: BookGRU(D + DS, N),
}


def example(cell, score="additive"):
    torch.manual_seed(0)
    layer = Aligned(cell, D, DS, score).double()
    x, v = torch.randn(B, T, D, dtype=torch.double), torch.randn(B, S, DS, dtype=torch.double)
    mask = torch.tensor([[True] * S, [True] * (S - 2) + [False] * 2])
    return layer, x, v, mask, torch.randn(B, cell.state_size, dtype=torch.double)


def test_equations_of_the_page():
    """s^(t) = tanh(W s^(t-1) + U [x^(t); u^(t)] + b), with u^(t) by (7.20), (7.21) and the additive score."""
    layer, x, v, mask, s = example(Elman(D + DS, N))
    states, alpha, last = layer(x, layer.attended(v, mask), s)
    c, a = layer.cell, layer.score
    for b in range(B):
        state, real = s[b], v[b][mask[b]]
        for t in range(T):
            e = torch.stack([a.v_a @ torch.tanh(a.W_a @ state + a.U_a @ v_j) for v_j in real])
            weights = e.exp() / e.exp().sum()
            u = sum(w * v_j for w, v_j in zip(weights, real))
            state = torch.tanh(c.weight_hh @ state + c.weight_ih @ torch.cat([x[b, t], u]) + c.bias)
            assert torch.allclose(alpha[b, t, : len(real)], weights)
            assert torch.allclose(states[b, t], state)
        assert torch.allclose(last[b], state)
    assert alpha[1, :, S - 2 :].eq(0).all()


@pytest.mark.parametrize("name", CELLS)
def test_the_split_equation_is_the_cells_own(name, monkeypatch):
    layer, x, v, mask, h = example(CELLS[name]())
    quick = layer(x, layer.attended(v, mask), h)
    wanted = torch.autograd.grad(quick[0].pow(2).sum(), list(layer.parameters()))
    monkeypatch.setattr(module, "STEPS", {})
    plain = layer(x, layer.attended(v, mask), h)
    found = torch.autograd.grad(plain[0].pow(2).sum(), list(layer.parameters()))
    for a, b in zip((*quick, *wanted), (*plain, *found), strict=True):
        assert torch.allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("score", SCORES)
def test_every_score_with_widths_that_do_not_fit(score):
    layer, x, v, mask, h = example(GRU(D + DS, N), score)
    states, alpha, _ = layer(x, layer.attended(v, mask), h)
    keys = v if layer.W_k is None else layer.W_k(v)
    before = torch.cat([h[:, None], states[:, :-1]], 1)
    scores = layer.score(before, keys).masked_fill(~mask[:, None], -torch.inf)
    assert torch.allclose(alpha, scores.softmax(-1))
    assert torch.allclose(alpha.sum(-1), torch.ones(B, T, dtype=torch.double))


def test_gradients_are_right():
    layer, x, v, mask, h = example(GRU(D + DS, N))

    def run(x, v, h):
        return layer(x[:, :2], layer.attended(v, mask), h)[0]

    assert torch.autograd.gradcheck(run, [z.requires_grad_() for z in (x, v, h)])


def test_a_row_without_a_source_is_finite_and_sees_nothing():
    layer, x, v, _, h = example(GRU(D + DS, N))
    nothing = torch.zeros(B, S, dtype=torch.bool)
    states = layer(x, layer.attended(torch.full_like(v, torch.nan), nothing), h)[0]
    zeros = layer(x, layer.attended(torch.zeros_like(v), ~nothing), h)[0]
    assert torch.allclose(states, zeros)


def test_a_cell_of_another_width_is_refused():
    with pytest.raises(UsageError, match="input width 7"):
        Aligned(GRU(7, N), 3, 5)
    assert isinstance(Aligned(GRU(7, N), 3, 4, "dot").W_k, nn.Linear)
