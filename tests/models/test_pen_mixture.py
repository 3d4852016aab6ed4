"""The baselines of a pen: mixtures that data was drawn from are found again, and conditional densities are Bayes'."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from unrolled.data.examples import Examples, ragged
from unrolled.emissions.pen import Pen
from unrolled.layers.counting.gaussian_mixture import Components, fit_mixture
from unrolled.models.pen_mixture import PenMixture, pairs

RANDOM = np.random.default_rng(0)


def drawings(n: int = 300, T: int = 12) -> Examples:
    """Moves that turn a little at each point; the pen is lifted after long ones."""
    found = []
    for _ in range(n):
        ways = [RANDOM.normal(size=2)]
        for _ in range(T - 1):
            ways.append(0.9 * ways[-1] @ [[0.8, 0.6], [-0.6, 0.8]] + RANDOM.normal(0, 0.2, 2))
        lift = (np.hypot(*np.array(ways).T) > 1.5).astype(float)
        moves = np.column_stack([ways, 1 - lift, lift, np.zeros(T)]).astype(np.float32)
        moves[-1, 2:] = 0, 0, 1
        found.append(moves)
    return Examples({"target": ragged(found)})


def test_components_are_found_again() -> None:
    means, scale = np.array([[0.0, 0.0], [4.0, 1.0], [-3.0, 5.0]]), np.array([[0.5, 1.0], [0.3, 0.3], [1.0, 0.2]])
    which = RANDOM.choice(3, 3000, p=[0.2, 0.5, 0.3])
    x = means[which] + scale[which] * RANDOM.normal(size=(3000, 2))
    found = fit_mixture(x, 3, 1e-4, np.random.default_rng(1))
    order = [int(np.argmin(((found.means - m) ** 2).sum(1))) for m in means]
    assert np.allclose(found.means[order], means, atol=0.15)
    assert np.allclose(found.weights[order], [0.2, 0.5, 0.3], atol=0.03)
    assert np.allclose(np.sqrt(np.diagonal(found.covariances[order], axis1=1, axis2=2)), scale, atol=0.1)


def test_log_joint_is_the_density() -> None:
    found = Components(np.array([0.3, 0.7]), RANDOM.normal(size=(2, 3)), np.stack([np.eye(3), 2 * np.eye(3) + 0.5]))
    x = RANDOM.normal(size=(5, 3))
    for k in range(2):
        wanted = multivariate_normal(found.means[k], found.covariances[k]).logpdf(x) + np.log(found.weights[k])
        assert np.allclose(found.log_joint(x)[:, k], wanted)


@pytest.mark.parametrize("points", [1, 3])
def test_few_points_are_enough(points: int) -> None:
    found = fit_mixture(np.ones((points, 2)), 4, 1e-4, np.random.default_rng(0))
    assert np.isfinite(found.log_joint(np.ones((1, 2)))).all()


def test_a_density_is_that_of_the_joint_mixture() -> None:
    """p(v | u) = p(u, v) / p(u), of the components that EM found."""
    data, K = drawings(60), 3
    model = PenMixture(1, 5, Pen(K).d_out).double()
    model.solve(data)
    before, now = pairs(data)
    down = np.flatnonzero(before[:, 2] == 1)
    joint = fit_mixture(np.hstack([before[down, :2], now[down, :2]]), K, 1e-4, _after(model, data))
    u, v = before[down[7]], now[down[7]]
    whole = np.exp(joint.log_joint(np.hstack([u[:2], v[:2]])[None])).sum()
    part = np.exp(
        Components(joint.weights, joint.means[:, :2], joint.covariances[:, :2, :2]).log_joint(u[None, :2])
    ).sum()
    y = model(torch.from_numpy(u)[None, None])[0][0]
    pen = Pen(K).parameters(y).log_e[0] @ torch.from_numpy(v[2:])
    assert float(Pen(K).log_prob(y, torch.from_numpy(v)[None]) - pen) == pytest.approx(np.log(whole / part), abs=1e-3)


def _after(model: PenMixture, data: Examples) -> np.random.Generator:
    """The random numbers of the second group: those that are left by the first."""
    random, (before, now) = np.random.default_rng(0), pairs(data)
    start = np.flatnonzero(before[:, 2:].sum(1) == 0)
    fit_mixture(np.hstack([before[start, :2], now[start, :2]]), model.pen.n_mixtures, 1e-4, random)
    return random


def test_the_move_before_helps() -> None:
    data, held = drawings(), drawings(100)
    nats = []
    for order in (0, 1):
        model = PenMixture(order, 5, Pen(4).d_out)
        model.solve(data)
        before, now = (torch.from_numpy(each).float() for each in pairs(held))
        nats.append(float(Pen(4).losses(model(before[None])[0], now[None]).mean()))
    assert nats[1] < nats[0] - 0.5


def test_the_memoryless_mixture_has_the_frequencies_of_the_states() -> None:
    data = drawings(50)
    model = PenMixture(0, 5, Pen(2).d_out)
    model.solve(data)
    y = model(torch.randn(1, 3, 5))[0]
    assert torch.allclose(y, y[:, :1].expand_as(y))
    shares = data.values("target")[:, 2:].mean(0)
    assert Pen(2).parameters(y).log_e[0, 0].exp().tolist() == pytest.approx(shares.tolist(), abs=2e-3)
