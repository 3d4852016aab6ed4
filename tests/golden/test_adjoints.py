"""Backpropagation through time by hand, against autograd.

In the corrected form of the book's (7.6)-(7.11): every adjoint takes in its own loss, each counts once in g_W, and the
Jacobian of step t + 1 is taken at x_{t+1}:

    zeta_t = (1/T) dC_t/dh_t + W^T diag(sigma'(W h_t + U x_{t+1} + b)) zeta_{t+1},    zeta_{T+1} = 0
    g_W = sum_t (sigma'_t * zeta_t) h_{t-1}^T
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from unrolled.core.causal import Causal
from unrolled.layers.recurrent.cells import Elman
from unrolled.layers.recurrent.deer import deer
from unrolled.layers.recurrent.fused import fused
from unrolled.layers.recurrent.recurrent import Recurrent
from unrolled.layers.recurrent.scan import Scan, loop

T, P, M = 9, 3, 5


def by_hand(cell: Elman, x: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """zeta [T, M], g_W, g_U and g_b for C = (1/T) sum_t |h_t - target_t|^2 / 2, with loops as on the page."""
    W, U, b = cell.weight_hh.detach(), cell.weight_ih.detach(), cell.bias.detach()
    h = [torch.zeros(M).double()]
    for t in range(T):
        h.append(torch.tanh(W @ h[-1] + U @ x[t] + b))
    zeta = [torch.zeros(M).double()] * (T + 2)
    for t in range(T, 0, -1):  # t = T, ..., 1; x[t - 1] is x^(t)
        local = (h[t] - target[t - 1]) / T
        later = W.T @ torch.diag(1 - h[t + 1] ** 2) @ zeta[t + 1] if t < T else 0
        zeta[t] = local + later
    slopes = [(1 - h[t] ** 2) * zeta[t] for t in range(1, T + 1)]
    g_W = sum(torch.outer(s, h[t]) for t, s in enumerate(slopes))
    g_U = sum(torch.outer(s, x[t]) for t, s in enumerate(slopes))
    return torch.stack(zeta[1 : T + 1]), g_W, g_U, sum(slopes)


@pytest.mark.parametrize("scan", [loop, fused, deer], ids=["loop", "fused", "deer"])
def test_autograd_agrees_with_the_adjoints(scan: Scan) -> None:
    torch.manual_seed(0)
    cell = Elman(P, M).double()
    x, target = torch.randn(T, P).double(), torch.randn(T, M).double()
    layer: Causal = Recurrent(cell, scan)
    h, _ = layer(x[None])
    (0.5 * (h[0] - target).square().sum() / T).backward()
    _, g_W, g_U, g_b = by_hand(cell, x, target)
    torch.testing.assert_close(cell.weight_hh.grad, g_W)
    torch.testing.assert_close(cell.weight_ih.grad, g_U)
    torch.testing.assert_close(cell.bias.grad, g_b)


def test_the_adjoints_are_the_gradients_of_the_states() -> None:
    torch.manual_seed(0)
    cell = Elman(P, M).double()
    x, target = torch.randn(T, P).double(), torch.randn(T, M).double()
    h, states = torch.zeros(M).double(), []
    for t in range(T):
        h = cell(x[t], h)
        h.retain_grad()
        states.append(h)
    loss = sum(0.5 * (s - y).square().sum() for s, y in zip(states, target, strict=True)) / T
    loss.backward()
    zeta = by_hand(cell, x, target)[0]
    torch.testing.assert_close(torch.stack([s.grad for s in states]), zeta)


def test_as_printed_the_adjoints_would_be_wrong() -> None:
    """(7.6) puts all losses into zeta_T and none into the others: not the gradient."""
    torch.manual_seed(0)
    cell = Elman(P, M).double()
    x, target = torch.randn(T, P).double(), torch.randn(T, M).double()
    W, h = cell.weight_hh.detach(), loop(cell, x[None], torch.zeros(1, M).double())[0][0].detach()
    printed = ((h - target) / T).sum(0)
    for t in range(T - 1, 0, -1):
        printed = W.T @ ((1 - h[t] ** 2) * printed)
    assert not torch.allclose(printed, by_hand(cell, x, target)[0][0], rtol=0.1)
