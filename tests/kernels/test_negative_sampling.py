"""The loop of negative sampling: its reference is the gradient of the loss, and its compiled form is its reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from unrolled.kernels import negative_sampling as kernel
from unrolled.kernels import negative_sampling_compiled as other

V, D, K = 40, 6, 3


def drawn(n: int, inputs: int, words: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(n)
    x = random.integers(1, V, (n, inputs, words)).astype(np.int32)
    x[random.random(x.shape) < 0.4] = 0
    x[:, 0, 0] = 1 + np.arange(n) % 7  # each position has an input
    y = random.integers(1, V, (n, 1 + K)).astype(np.int32)
    y[:, 1:][y[:, 1:] == y[:, :1]] = 0
    return x, y


def tables() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return tuple(random.normal(size=(V, D)).astype(np.float32) for _ in range(2))  # type: ignore[return-value]


METHODS = {"skip-gram": (4, 1), "cbow": (1, 4), "both": (2, 3)}


def loss_of(v: torch.Tensor, u: torch.Tensor, x: np.ndarray, y: np.ndarray) -> torch.Tensor:
    """C of one position, as the docstring of the kernel has it."""
    total = torch.zeros((), dtype=torch.float64)
    for words in x:
        real = [int(word) for word in words if word]
        if real:
            h = v[real].mean(0)
            total = total - F.logsigmoid(u[int(y[0])] @ h)
            total = total - sum(F.logsigmoid(-u[int(j)] @ h) for j in y[1:] if j)
    return total


@pytest.mark.parametrize("method", METHODS)
def test_a_position_moves_along_the_gradient_of_its_loss(method: str) -> None:
    x, y = drawn(1, *METHODS[method])
    vectors, outputs = tables()
    v, u = (torch.from_numpy(each).double().requires_grad_() for each in (vectors, outputs))
    loss = loss_of(v, u, x[0], y[0])
    loss.backward()
    before = vectors.copy(), outputs.copy()
    total, count = kernel.reference(vectors, outputs, x, y, 0.1, 0.2)
    assert total == pytest.approx(float(loss.detach()), rel=1e-5)
    assert count == sum(bool(words.any()) for words in x[0])
    np.testing.assert_allclose(vectors - before[0], -0.1 * v.grad.numpy(), atol=1e-6)
    np.testing.assert_allclose(outputs - before[1], -0.2 * u.grad.numpy(), atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_the_loop_that_is_compiled_equals_the_reference(method: str) -> None:
    """As Python runs it, and where numba is installed as machine code."""
    x, y = drawn(60, *METHODS[method])
    expected = tables()
    told = kernel.reference(*expected, x, y, 0.05, 0.05)
    for loop in [other._loop, *([kernel.loop()] if kernel.is_compiled() else [])]:
        found = tables()
        assert loop(*found, x, y, 0.05, 0.05) == pytest.approx(told, rel=1e-5)
        for one, two in zip(found, expected):
            np.testing.assert_allclose(one, two, atol=1e-6)


def test_a_rate_of_zero_keeps_a_table() -> None:
    x, y = drawn(20, 4, 1)
    vectors, outputs = tables()
    kernel.descend(vectors, outputs, x, y, (0.0, 0.1))
    assert (vectors == tables()[0]).all()
    assert (outputs != tables()[1]).any()


def test_several_workers_come_near_one(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = drawn(64, 4, 1)
    monkeypatch.setattr(kernel, "is_compiled", lambda: True)  # threads, each with the reference
    monkeypatch.setattr(kernel, "loop", lambda: kernel.reference)
    one, two = tables(), tables()
    kernel.descend(*one, x, y, (0.001, 0.001))
    kernel.descend(*two, x, y, (0.001, 0.001), workers=2)
    for a, b in zip(one, two):
        np.testing.assert_allclose(a, b, atol=1e-3)
        assert np.abs(a - tables()[0]).max() > 1e-3
