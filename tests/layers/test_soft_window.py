"""The soft window against a few lines written from the paper: equations, state, padding, direction."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from unrolled.core.errors import UsageError
from unrolled.core.trace import trace
from unrolled.layers.attention.soft_window import WindowDecoder
from unrolled.layers.recurrent.cells import LSTM
from unrolled.layers.recurrent.recurrent import Recurrent
from unrolled.layers.recurrent.scan import loop

D, C, N, K, S = 3, 4, 5, 2, 6


def decoder() -> WindowDecoder:
    torch.manual_seed(0)
    above = Recurrent(LSTM(D + C + N, N), loop)
    made = WindowDecoder(LSTM(D + C, N), D, C, K, [above]).double()
    with torch.no_grad():
        made.window.weight.mul_(20)
    return made


def by_hand(made: WindowDecoder, x: Tensor, c: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Graves (2013), eqs (46)-(53), of one row x [T, D] and c [S, C]; y [T, 2 N] and phi [T, S]."""
    cell, upper = made.cell, made.above[0].cell
    h, h2 = torch.zeros(2 * N, dtype=x.dtype), torch.zeros(2 * N, dtype=x.dtype)
    kappa, w, ys, phis = [0.0] * K, torch.zeros(C, dtype=x.dtype), [], []
    for x_t in x:
        h = cell(torch.cat([x_t, w])[None], h[None])[0]
        hats = (made.window.weight @ h[:N] + made.window.bias).tolist()
        kappa = [kappa[k] + math.exp(hats[2 * K + k]) for k in range(K)]
        phi = [
            sum(math.exp(hats[k]) * math.exp(-math.exp(hats[K + k]) * (kappa[k] - u) ** 2) for k in range(K))
            for u in range(1, length + 1)
        ]
        w = torch.stack([phi[u] * c[u] for u in range(length)]).sum(0)
        h2 = upper(torch.cat([x_t, w, h[:N]])[None], h2[None])[0]
        ys.append(torch.cat([h[:N], h2[:N]]))
        phis.append(torch.tensor(phi + [0.0] * (len(c) - length), dtype=x.dtype))
    return torch.stack(ys), torch.stack(phis)


def test_it_is_the_equations_of_the_paper() -> None:
    made = decoder()
    x, c = torch.randn(2, 7, D, dtype=torch.float64), torch.randn(2, S, C, dtype=torch.float64)
    mask = torch.tensor([[True] * S, [True] * 4 + [False] * 2])
    with trace() as seen, torch.no_grad():
        y, _ = made(x, made.start(c, mask))
    (shown,) = seen["attention"]
    for row, length in enumerate((S, 4)):
        with torch.no_grad():
            wanted, phi = by_hand(made, x[row], c[row], length)
        assert torch.allclose(y[row], wanted)
        assert torch.allclose(shown[row, 0], phi / phi.sum(-1, keepdim=True))


def test_the_window_only_moves_forward() -> None:
    made, before = decoder(), torch.zeros(1, K, dtype=torch.float64)
    state = made.start(torch.randn(1, S, C, dtype=torch.float64), torch.ones(1, S, dtype=torch.bool))
    for _ in range(20):
        _, state = made(torch.randn(1, 1, D, dtype=torch.float64), state)
        _, (_, kappa, _), _ = state
        assert (kappa > before).all()
        before = kappa


def test_padding_and_a_source_without_positions_change_nothing() -> None:
    made = decoder()
    x, c = torch.randn(1, 4, D, dtype=torch.float64), torch.randn(1, 3, C, dtype=torch.float64)
    longer = torch.cat([c, torch.full((1, 2, C), torch.nan, dtype=torch.float64)], 1)
    y, _ = made(x, made.start(c, torch.ones(1, 3, dtype=torch.bool)))
    again, _ = made(x, made.start(longer, torch.tensor([[True] * 3 + [False] * 2])))
    assert torch.allclose(y, again)
    none, _ = made(x, made.start(c, torch.zeros(1, 3, dtype=torch.bool)))
    assert none.isfinite().all()


def test_large_weights_do_not_overflow() -> None:
    made = decoder()
    with torch.no_grad():
        made.window.weight.mul_(1e6)
    y, _ = made(torch.randn(1, 30, D).double(), made.start(torch.randn(1, S, C).double(), torch.ones(1, S) > 0))
    y.sum().backward()
    assert y.isfinite().all() and all(each.grad is None or each.grad.isfinite().all() for each in made.parameters())


def test_misuse_is_told() -> None:
    with pytest.raises(UsageError, match="needs a source"):
        decoder()(torch.zeros(1, 1, D).double())
    with pytest.raises(UsageError, match="input width 9"):
        WindowDecoder(LSTM(9, N), D, C, K)
