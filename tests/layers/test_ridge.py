"""Ridge regression against its own equation: the weights, and each example really left out."""

from __future__ import annotations

import pytest
import torch

from unrolled.layers.counting import ridge


def problem(n: int, F: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(n + F)
    z = torch.randn(n, F, generator=random, dtype=torch.float64)
    y = z[:, :2] @ torch.tensor([[1.0, -2.0], [0.5, 0.0]], dtype=torch.float64) + 3
    return z - z.mean(0), y + torch.randn(n, 2, generator=random, dtype=torch.float64)


def by_the_equation(z: torch.Tensor, y: torch.Tensor, a: float) -> torch.Tensor:
    """W [C, F] of z and y less their means."""
    return torch.linalg.solve(z.T @ z + a * torch.eye(z.shape[1], dtype=z.dtype), z.T @ (y - y.mean(0))).T


@pytest.mark.parametrize(("n", "F"), [(12, 5), (8, 30), (9, 8)])
def test_weights_are_those_of_the_equation(n: int, F: int) -> None:
    z, y = problem(n, F)
    found = ridge.solve(z, y, torch.tensor([0.7]))
    torch.testing.assert_close(found.weight, by_the_equation(z, y, 0.7), rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(found.bias, y.mean(0))


@pytest.mark.parametrize(("n", "F"), [(12, 5), (8, 30)])
def test_each_example_is_really_left_out(n: int, F: int) -> None:
    """The penalised problem with a free constant, solved N times without one example."""
    z, y = problem(n, F)
    found = ridge.solve(z, y, torch.tensor([0.7]))
    penalty = torch.diag(torch.tensor([0.7] * F + [0.0], dtype=z.dtype))
    ones = torch.cat([z, torch.ones(n, 1, dtype=z.dtype)], 1)
    for i in range(n):
        rest = torch.arange(n) != i
        W = torch.linalg.solve(ones[rest].T @ ones[rest] + penalty, ones[rest].T @ y[rest])
        torch.testing.assert_close(found.left_out[i], ones[i] @ W, rtol=1e-6, atol=1e-8)


def test_the_strength_that_errs_least_is_taken() -> None:
    z, y = problem(20, 60)
    strengths = torch.tensor([1e-3, 1.0, 30.0, 1e3])
    misses = [float((ridge.solve(z, y, s[None]).left_out - y).square().mean()) for s in strengths]
    best = ridge.solve(z, y, strengths)
    assert float((best.left_out - y).square().mean()) == pytest.approx(min(misses))
    assert misses.index(min(misses)) not in (0, 3)


@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e7])
@pytest.mark.parametrize(("n", "F"), [(12, 5), (8, 30)])
def test_the_unit_of_the_features_changes_nothing(scale: float, n: int, F: int) -> None:
    """Features of which two are equal, so that there is nothing to learn in some direction."""
    z, y = problem(n, F)
    z[:, 1] = z[:, 0]
    found = ridge.solve(scale * z, y, torch.tensor([0.7 * scale**2], dtype=torch.float64))
    torch.testing.assert_close(scale * found.weight, by_the_equation(z, y, 0.7), rtol=1e-6, atol=1e-9)


def test_features_that_never_vary_weigh_nothing() -> None:
    z, y = torch.zeros(4, 3), torch.tensor([[1.0], [2.0], [3.0], [6.0]])
    found = ridge.solve(z, y, torch.tensor([1.0]))
    assert not found.weight.any()
    torch.testing.assert_close(found.left_out[3, 0], torch.tensor(2.0, dtype=torch.float64))
