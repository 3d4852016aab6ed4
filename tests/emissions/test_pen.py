"""The emission of a pen: its density against scipy, its limits, its draws, and the mixture of mixtures."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from torch import Tensor

from unrolled.core.errors import UnrolledError
from unrolled.decode.noise import Noise
from unrolled.decode.rollout import best_of
from unrolled.emissions.pen import LEAST, STATES, STEEPEST, Bias, Pen

PEN = Pen(3)
POINT = torch.tensor([[0.4, -1.1, 0, 1, 0]], dtype=torch.float64)


def outputs(seed: int = 0, rows: int = 1) -> Tensor:
    return torch.randn(rows, PEN.d_out, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def density(y: Tensor, x: Tensor, bias: float = 0.0) -> float:
    """Graves (2013), eqs (18)-(26), of one point, as the page has it."""
    pi, mu_1, mu_2, s_1, s_2, r = y[: -len(STATES)].view(6, 3).tolist()
    weights = np.exp(np.array(pi) * (1 + bias))
    total = 0.0
    for k in range(3):
        sigma = [0.01 * (1 + math.exp(s + math.log(100))) * math.exp(-bias) for s in (s_1[k], s_2[k])]
        rho = STEEPEST * math.tanh(r[k])
        cov = [[sigma[0] ** 2, rho * sigma[0] * sigma[1]], [rho * sigma[0] * sigma[1], sigma[1] ** 2]]
        total += weights[k] / weights.sum() * multivariate_normal([mu_1[k], mu_2[k]], cov).pdf(x[:2].tolist())
    e = y[-len(STATES) :].softmax(-1)
    return math.log(total) + math.log(float((e * x[2:]).sum()))


@pytest.mark.parametrize("seed", range(4))
def test_the_density_is_that_of_the_paper(seed: int) -> None:
    y = outputs(seed)
    assert float(PEN.log_prob(y, POINT)) == pytest.approx(density(y[0], POINT[0]), abs=1e-9)
    assert float(PEN.losses(y[None], POINT[None])) == pytest.approx(-density(y[0], POINT[0]), abs=1e-9)


def test_the_gradient_is_that_of_differences() -> None:
    y = outputs(1, 2).requires_grad_()
    point = POINT.expand(2, -1)
    assert torch.autograd.gradcheck(lambda z: PEN.each(z, point), (y,))


@pytest.mark.parametrize("size", [1e3, 1e6, 1e12])
def test_extreme_outputs_have_finite_losses_and_gradients(size: float) -> None:
    """In single precision, whatever a diverging model puts out."""
    for sign in (1, -1):
        y = (sign * size * outputs(2).float()).requires_grad_()
        loss = PEN.loss(y[None], POINT[None].float())[0]
        loss.backward()
        assert y.grad is not None
        if size <= 1e6:
            assert loss.isfinite() and y.grad.isfinite().all()
        parts = PEN.parameters(y.detach())
        assert float(parts.log_sigma.min()) >= LEAST - 1e-6 and float(parts.rho.abs().max()) < 1


def test_a_bias_narrows_the_components_and_prefers_the_likely_ones() -> None:
    """Eqs (61)-(62)."""
    y = outputs(3)
    plain, biased = PEN.parameters(y), PEN.parameters(y, 2.0)
    assert torch.allclose(biased.log_sigma, plain.log_sigma - 2.0)
    assert torch.allclose(biased.log_pi, (3 * y[:, :3]).log_softmax(-1))
    assert torch.allclose(biased.log_e, plain.log_e)  # what the pen does is as likely as before


def test_draws_have_the_moments_of_a_component() -> None:
    one, n = Pen(1), 20_000
    y = one.outputs(torch.zeros(1), torch.tensor([[1.0, -2.0]]), torch.tensor([[[0.5, 0.3], [0.3, 0.4]]]),
                    torch.tensor([0.2, 0.5, 0.3]).log())  # fmt: skip
    noise = Noise(0, torch.arange(n), one.n_noise)(0)
    choice = one.chooser(Bias())(y.expand(n, -1), torch.zeros(n, 1, 5, dtype=torch.float64), noise)
    assert torch.allclose(choice[:, :2].mean(0), torch.tensor([1.0, -2.0], dtype=torch.float64), atol=0.02)
    assert torch.allclose(choice[:, :2].T.cov(), torch.tensor([[0.5, 0.3], [0.3, 0.4]], dtype=torch.float64), atol=0.02)
    assert choice[:, 2:].mean(0).tolist() == pytest.approx([0.2, 0.5, 0.3], abs=0.02)
    assert choice[:, 2:].sum(1).eq(1).all()


def test_outputs_are_the_inverse_of_parameters() -> None:
    y = outputs(4)
    found = PEN.parameters(y)
    a, b = found.log_sigma.exp().unbind(-1)
    cov = torch.stack([a * a, found.rho * a * b, found.rho * a * b, b * b], -1).unflatten(-1, (2, 2))
    again = PEN.outputs(found.log_pi, found.mu, cov, found.log_e)
    assert torch.allclose(PEN.log_prob(again, POINT), PEN.log_prob(y, POINT))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rho", [1.0, -1.0])
def test_outputs_of_a_line_are_finite(dtype: torch.dtype, rho: float) -> None:
    """A covariance without an inverse becomes the narrowest one."""
    line = 1e-4 * torch.tensor([[[1.0, rho], [rho, 1.0]]], dtype=dtype)
    y = Pen(1).outputs(torch.zeros(1, dtype=dtype), torch.zeros(1, 2, dtype=dtype), line, torch.zeros(3, dtype=dtype))
    assert y.isfinite().all()
    found = Pen(1).parameters(y)
    assert float(found.rho) == pytest.approx(rho * STEEPEST, rel=1e-5)
    assert found.log_sigma.tolist() == [pytest.approx([math.log(0.01)] * 2, abs=1e-3)]


def test_a_mixture_keeps_the_mean_and_the_covariance() -> None:
    ys, weights = torch.stack([outputs(5), outputs(6)]), torch.tensor([0.7, 0.3], dtype=torch.float64)

    def moments(y: Tensor) -> tuple[Tensor, Tensor]:
        log_pi, mu, s, rho, _ = PEN.parameters(y)
        pi = log_pi.exp().unsqueeze(-1)
        m = (pi * mu).sum(-2)
        xy = (pi.squeeze(-1) * (rho * s.sum(-1).exp() + mu[..., 0] * mu[..., 1])).sum(-1)
        squares = (pi * ((2 * s).exp() + mu.square())).sum(-2)
        return m, torch.cat([squares, xy.unsqueeze(-1)], -1)

    each, mixed = moments(ys), moments(PEN.mix(ys, weights))
    for parts, whole in zip(each, mixed, strict=True):
        assert torch.allclose(torch.tensordot(weights, parts, dims=1), whole)


def test_a_wide_model_is_calibrated() -> None:
    one, n = Pen(1), 4000
    point = torch.randn(1, n, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    target = torch.cat([point, torch.eye(3, dtype=torch.float64)[torch.zeros(1, n, dtype=torch.long)]], -1)
    y = one.outputs(torch.zeros(1), torch.zeros(1, 2), 4 * torch.eye(2)[None], torch.zeros(3)).double()
    assert one.calibrate(y.expand(1, n, -1), target).spread == pytest.approx(0.5, rel=0.05)


def test_a_rollout_ends_with_the_pen() -> None:
    """The third point ends the drawing in every row; what is drawn is fed back."""
    fed = []

    def step(x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        fed.append(x)
        y = torch.zeros(len(x), x.shape[1], PEN.d_out)
        y[..., -3:] = torch.tensor([0.0, 0.0, 60.0]) if int(state[0]) == 2 else torch.tensor([60.0, 0.0, 0.0])
        return y, state + 1

    (found,) = best_of(3, step, torch.zeros(1), torch.zeros(1, 1, 5), None, PEN.chooser(Bias()), (), 10, of=PEN)
    assert [(len(each.tokens), each.finished) for each in found] == [(3, True)] * 3
    assert fed[1].shape == (3, 1, 5) and fed[1][:, 0, 2].eq(1).all()


def test_outputs_that_are_not_finite_are_refused() -> None:
    with pytest.raises(UnrolledError, match="nan"):
        PEN.chooser(Bias())(torch.full((1, PEN.d_out), torch.nan), torch.zeros(1, 1, 5), torch.zeros(1, 4))


def test_what_it_tells() -> None:
    assert json.loads(PEN.to_json()) | {"spread": 1.0} == {
        "name": "pen", "d_out": 21, "n_mixtures": 3, "spread": 1.0, "states": ["down", "lift", "end"],
    }  # fmt: skip
