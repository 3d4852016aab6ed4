"""Distributions of numbers against scipy.stats; what is missing; other units; calibration; mixtures; learning."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from unrolled.core import discover
from unrolled.core.emission import Distribution, Numeric
from unrolled.core.errors import DataError, UsageError
from unrolled.decode.config import Decoding
from unrolled.decode.noise import Noise
from unrolled.decode.rollout import rollout
from unrolled.emissions._numbers import Numbers
from unrolled.emissions.gaussian import Gaussian
from unrolled.emissions.negative_binomial import NegativeBinomial
from unrolled.emissions.point import Point
from unrolled.emissions.quantiles import LEVELS, Quantiles
from unrolled.emissions.student_t import StudentT

SOME = [0.001, 0.025, 0.1, 0.3, 0.5, 0.9, 0.999]


def outputs(emission: Any, *shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, emission.d_out, generator=torch.Generator().manual_seed(seed)).double()


def draws(emission: Distribution, y: Tensor, n: int, temperature: float = 1.0) -> Tensor:
    """n draws [n, d] from y [d_out]."""
    choose = emission.chooser(Decoding(temperature=temperature))
    noise = Noise(3, torch.arange(n), emission.n_noise)(0)
    return choose(y.expand(n, -1), torch.zeros(n, 1, emission.d).double(), noise)


def normal(y: Tensor) -> Any:
    mu, s = y.chunk(2, -1)
    return stats.norm(mu, s.exp())


def student(y: Tensor) -> Any:
    mu, s, a = y.chunk(3, -1)
    return stats.t(2 + a.exp(), mu, s.exp())


def counts(y: Tensor) -> Any:
    m, alpha = y.exp().chunk(2, -1)
    return stats.nbinom(1 / alpha, 1 / (1 + alpha * m))


ORACLES: dict[str, tuple[Numbers, Callable[[Tensor], Any]]] = {
    "gaussian": (Gaussian(2), normal), "student-t": (StudentT(2), student),
    "negative-binomial": (NegativeBinomial(2), counts),
}  # fmt: skip
ALL: dict[str, Numbers] = {name: each for name, (each, _) in ORACLES.items()} | {"quantiles": Quantiles(2)}
REAL = [each for name, each in ALL.items() if name != "negative-binomial"]
by_name = {"ids": lambda each: each.name}


def targets(emission: Numbers, *shape: int) -> Tensor:
    value = 2 * torch.randn(*shape, emission.d, generator=torch.Generator().manual_seed(7)).double()
    return value.abs().floor() if isinstance(emission, NegativeBinomial) else value


# ---- against scipy


@pytest.mark.parametrize("name", ORACLES)
def test_a_distribution_is_that_of_scipy(name: str) -> None:
    emission, oracle = ORACLES[name]
    y, x = outputs(emission, 40), targets(emission, 40)
    of = oracle(y)
    log_p = of.logpmf(x) if name == "negative-binomial" else of.logpdf(x)
    torch.testing.assert_close(emission.log_prob(y, x), torch.tensor(log_p).sum(-1), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(emission.cdf(y, x), torch.tensor(of.cdf(x)), rtol=1e-9, atol=1e-12)
    wanted = torch.tensor(np.stack([of.ppf(level) for level in SOME]))
    torch.testing.assert_close(emission.quantiles(y, SOME), wanted, rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(emission.median(y), torch.tensor(of.median()), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(emission.mean(y), torch.tensor(of.mean()), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ORACLES)
def test_single_precision_is_nearly_as_good(name: str) -> None:
    emission, oracle = ORACLES[name]
    y, x = outputs(emission, 1, 40), targets(emission, 1, 40)
    y[..., -2:] += {"student-t": 5.0, "negative-binomial": -9.0}.get(name, 0.0)  # nearly normal, nearly Poisson
    y = y.clamp(-12, 6)
    of = oracle(y)
    log_p = of.logpmf(x) if name == "negative-binomial" else of.logpdf(x)
    found = emission.losses(y.float(), x.float())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), -torch.tensor(log_p).sum(-1), rtol=1e-4, atol=1e-4)


def test_quantiles_interpolate_and_have_exponential_tails() -> None:
    emission, y = Quantiles(1, levels=(0.1, 0.5, 0.9)), torch.tensor([1.0, 2.0, 5.0]).double()
    found = emission.quantiles(y, [0.1, 0.3, 0.5, 0.6, 0.9])[:, 0]
    torch.testing.assert_close(found, torch.tensor([1.0, 1.5, 2.0, 2.75, 5.0]).double())
    low, high = emission.quantiles(y, [0.1 / math.e, 1 - 0.1 / math.e])[:, 0]
    assert float(low) == pytest.approx(1 - 2.5 * 0.1)  # the slope times tau below the first quantile
    assert float(high) == pytest.approx(5 + 7.5 * 0.1)
    x = torch.linspace(-9, 30, 400_001).double()[:, None]
    p = emission.log_prob(y.expand(len(x), -1), x).exp()
    assert float(torch.trapezoid(p, x[:, 0])) == pytest.approx(1, abs=1e-4)
    assert float(torch.trapezoid(p * x[:, 0], x[:, 0])) == pytest.approx(float(emission.mean(y)), abs=1e-3)
    every = torch.cumulative_trapezoid(p, x[:, 0])
    torch.testing.assert_close(emission.cdf(y, x)[1:, 0], every, rtol=0, atol=1e-4)


def test_quantiles_that_cross_are_sorted_where_they_are_reported_but_not_in_training() -> None:
    emission = Quantiles(1, levels=(0.25, 0.5, 0.75))
    crossed, sorted_ = torch.tensor([[[3.0, 1.0, 2.0]]]), torch.tensor([[[1.0, 2.0, 3.0]]])
    target = torch.full((1, 1, 1), 2.5)
    torch.testing.assert_close(emission.losses(crossed, target), emission.losses(sorted_, target))
    assert emission.quantiles(crossed, (0.25, 0.5, 0.75)).flatten().tolist() == [1, 2, 3]
    assert float(emission.loss(crossed, target)[0]) > float(emission.loss(sorted_, target)[0])
    equal = torch.full((1, 3), 4.0).double()
    assert emission.quantiles(equal, [0.3])[0].item() == 4
    assert emission.cdf(torch.tensor([[1.0, 1.0, 2.0]]), torch.tensor([[1.0]])).item() == 0.5
    assert emission.log_prob(equal, torch.full((1, 1), 4.0)).isfinite().all()


@pytest.mark.parametrize("levels", [(0.5,), (0.9, 0.1), (0.1, 0.1), (0.0, 0.5), (0.5, 1.0), (0.1, math.nan)])
def test_levels_are_checked(levels: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match=r"levels = .*between 0 and 1, ascending"):
        Quantiles(1, levels=levels)


# ---- losses


@pytest.mark.parametrize("emission", ALL.values(), **by_name)
def test_gradients_are_exact(emission: Numbers) -> None:
    y, target = outputs(emission, 2, 3).requires_grad_(), targets(emission, 2, 3)
    mask = torch.tensor([[True, True, False], [False, True, True]])
    assert torch.autograd.gradcheck(lambda y: emission.loss(y, target, mask)[0], y)


@pytest.mark.parametrize("emission", [*ALL.values(), Point(2), Point(2, "l1")], **by_name)
def test_a_number_that_is_missing_changes_nothing(emission: Any) -> None:
    y, target = outputs(emission, 2, 3), targets(ALL["gaussian"], 2, 3).abs().floor()
    seen = torch.tensor([[[True, True], [True, False], [True, True]], [[False, True], [False, False], [True, True]]])
    holes = target.masked_fill(~seen, math.nan)
    found = []
    for at in (target, holes):
        leaf = y.clone().requires_grad_()
        total, count = emission.loss(leaf, at, seen)
        total.backward()
        found.append((total.detach(), emission.losses(y, at, seen), leaf.grad))
        assert int(count) == 8
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)
    assert found[0][1][1, 1] == 0
    first = emission.losses(y[:1, :1], target[:1, :1])
    torch.testing.assert_close(found[0][1][:1, :1], first)


@pytest.mark.parametrize("emission", ALL.values(), **by_name)
def test_without_a_mask_nan_is_missing(emission: Numbers) -> None:
    y, target = outputs(emission, 1, 4), targets(emission, 1, 4)
    target[0, 1, 0] = math.nan
    total, count = emission.loss(y, target)
    assert int(count) == 7
    torch.testing.assert_close(total, emission.loss(y, target, ~target.isnan())[0])


@pytest.mark.parametrize("emission", ALL.values(), **by_name)
@pytest.mark.parametrize("value", [-1e4, 1e4])
def test_extreme_outputs_have_a_finite_loss(emission: Numbers, value: float) -> None:
    y = torch.zeros(1, 1, emission.d_out)
    y[..., emission.d :] = value
    leaf = y.requires_grad_()
    total, _ = emission.loss(leaf, torch.ones(1, 1, 2))
    total.backward()
    assert bool(total.isfinite()) and bool(leaf.grad.isfinite().all())


def test_the_loss_of_a_point_is_the_mean_over_what_is_observed() -> None:
    y, target = torch.zeros(1, 2, 2), torch.tensor([[[3.0, math.nan], [1.0, 2.0]]])
    assert Point(2).losses(y, target, ~target.isnan()).tolist() == [[9.0, 2.5]]


# ---- other units


@pytest.mark.parametrize("emission", REAL, **by_name)
def test_rescaled_outputs_mean_the_same_in_other_units(emission: Numbers) -> None:
    emission = replace(emission, spread=1.3)
    y, x = outputs(emission, 5, 4), targets(emission, 5, 4)
    shift, scale = outputs(Point(2), 5, 1, seed=1), outputs(Point(2), 5, 1, seed=2).exp()
    other = emission.rescaled(y, shift, scale)
    torch.testing.assert_close(emission.quantiles(other, SOME), shift + scale * emission.quantiles(y, SOME))
    torch.testing.assert_close(emission.mean(other), shift + scale * emission.mean(y))
    torch.testing.assert_close(emission.cdf(other, shift + scale * x), emission.cdf(y, x))
    moved = emission.log_prob(other, shift + scale * x)
    torch.testing.assert_close(moved, emission.log_prob(y, x) - scale.log().sum(-1))
    leaf = scale.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda scale: emission.rescaled(y, shift, scale), leaf)


def test_counts_are_rescaled_by_their_mean_and_never_shifted() -> None:
    emission, y = NegativeBinomial(2), outputs(NegativeBinomial(2), 3, 4)
    scale = torch.full((3, 1, 2), 30.0).double()
    other = emission.rescaled(y, torch.zeros(3, 1, 2), scale)
    torch.testing.assert_close(emission.mean(other), 30 * emission.mean(y))
    torch.testing.assert_close(other[..., 2:], y[..., 2:])
    with pytest.raises(ValueError, match="not shifted"):
        emission.rescaled(y, torch.ones(3, 1, 2), scale)


def test_points_are_rescaled_themselves() -> None:
    y = outputs(Point(2), 3, 4)
    assert isinstance(Point(2), Numeric)
    assert not isinstance(Point(2), Distribution)
    torch.testing.assert_close(Point(2).rescaled(y, torch.tensor(1.0), torch.tensor(2.0)), 1 + 2 * y)


# ---- draws


@pytest.mark.parametrize("emission", ALL.values(), **by_name)
def test_temperature_scales_the_spread(emission: Numbers) -> None:
    y = outputs(emission, seed=5) + (3.0 if emission.name == "negative-binomial" else 0.0)
    cold, cool, warm = (draws(emission, y, 4000, temperature) for temperature in (0, 0.5, 1))
    torch.testing.assert_close(cold, emission.median(y).expand_as(cold))
    spread = [(each.quantile(0.9, dim=0) - each.quantile(0.1, dim=0)) for each in (cool, warm)]
    assert bool((spread[0] < 0.8 * spread[1]).all())
    if emission.name != "negative-binomial":
        torch.testing.assert_close(cool - cold, (warm - cold) / 2)


def test_a_row_is_drawn_alike_alone_and_in_a_batch() -> None:
    emission = StudentT(2)

    def step(x: Tensor, state: Any) -> tuple[Tensor, Any]:
        return torch.cat([0.5 * x, x - 1, x], dim=-1), state

    prompt = outputs(Point(2), 3, 2).float()
    choose = emission.chooser(Decoding())
    with torch.no_grad():
        every = [c.tokens for c in rollout(step, None, prompt, None, choose, (), 5, seed=4, of=emission)]
        alone = [c.tokens for c in rollout(step, None, prompt[:1], None, choose, (), 5, seed=4, of=emission)]
    torch.testing.assert_close(torch.stack(alone)[:, 0], torch.stack(every)[:, 0])
    assert every[0].dtype == torch.float32


@pytest.mark.parametrize("emission", ALL.values(), **by_name)
def test_nothing_is_drawn_from_outputs_that_are_not_finite(emission: Numbers) -> None:
    with pytest.raises(DataError, match=r"step 2: .*not finite \(nan\)"):
        draws(emission, torch.full((emission.d_out,), math.nan).double(), 3)


# ---- calibration and mixtures


@pytest.mark.parametrize("emission", ALL.values(), **by_name)
def test_calibration_finds_the_spread_of_held_out_targets(emission: Numbers) -> None:
    y = outputs(emission, seed=2) + (2.0 if emission.name == "negative-binomial" else 0.0)
    y[-2:] += 1.0
    truth = replace(emission, spread=1.7)
    x = draws(truth, y, 6_000).view(60, 100, 2)
    many = y.expand(60, 100, -1)
    found = emission.calibrate(many, x)
    assert found.spread == pytest.approx(1.7, rel=0.06)
    assert found.losses(many, x).mean() < emission.losses(many, x).mean()
    torch.testing.assert_close(found.loss(many, x), emission.loss(many, x))  # training does not see it
    assert found.calibrate(many, x).spread == pytest.approx(found.spread, rel=1e-4)
    none = torch.zeros(60, 100, dtype=torch.bool)
    assert emission.calibrate(many, x.fill_(math.nan), none).spread == 1


def test_the_closed_form_of_a_normal_spread_is_what_a_search_finds() -> None:
    emission, y, x = Gaussian(2), outputs(Gaussian(2), 4, 5), targets(Gaussian(2), 4, 5)
    mask = x[..., 0] > -1
    assert emission.calibrate(y, x, mask).spread == pytest.approx(Numbers.calibrate(emission, y, x, mask).spread)
    exact = y[:1, :1, :2]
    assert emission.calibrate(y[:1, :1], exact).spread == pytest.approx(math.sqrt(1 / 3))  # not 0


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("spread", [1.0, 1.5])
def test_a_mixture_has_the_mean_and_the_variance_of_its_parts(name: str, spread: float) -> None:
    emission, oracle = ORACLES[name]
    emission = replace(emission, spread=spread)
    ys, w = outputs(emission, 3, 6), torch.tensor([0.2, 0.5, 0.3]).double()
    ys[..., -2:] += 1.0

    def told(y: Tensor) -> tuple[Tensor, Tensor]:
        place = -2 if name == "negative-binomial" else 2
        y = y.clone()
        y.unflatten(-1, (-1, 2))[..., place // 2, :] += math.log(spread)
        of = oracle(y)
        return torch.tensor(of.mean()), torch.tensor(of.var())

    (m, v), (mean, variance) = told(ys), told(emission.mix(ys, w))
    torch.testing.assert_close(mean, (w[:, None, None] * m).sum(0))
    torch.testing.assert_close(variance, (w[:, None, None] * (v + m.square())).sum(0) - mean.square())


def test_a_mixture_of_quantiles_has_their_means() -> None:
    emission, w = Quantiles(2, spread=1.5), torch.tensor([0.2, 0.5, 0.3]).double()
    ys = outputs(emission, 3, 6)
    wanted = (w[:, None, None, None] * torch.stack([emission.quantiles(y, LEVELS) for y in ys])).sum(0)
    torch.testing.assert_close(emission.quantiles(emission.mix(ys, w), LEVELS), wanted)


# ---- learning


@pytest.mark.parametrize("name", ORACLES)
def test_outputs_that_are_fitted_to_draws_are_those_drawn_from(name: str) -> None:
    emission, _ = ORACLES[name]
    truth = torch.tensor([2.0, 0.5, -0.5, 0.3, 1.2, 0.8][: emission.d_out]).double()
    x = draws(emission, truth, 8_000)[:, None]
    y = fitted(emission, x)
    torch.testing.assert_close(y, truth, rtol=0, atol=0.12)


def test_quantiles_that_are_fitted_are_those_of_the_data() -> None:
    emission, x = Quantiles(1), torch.linspace(0, 1, 4001).double().view(-1, 1, 1)
    torch.testing.assert_close(fitted(emission, x), torch.tensor(LEVELS).double(), rtol=0, atol=0.01)


def fitted(emission: Numbers, x: Tensor) -> Tensor:
    """The outputs [d_out], equal at all positions, with the least loss."""
    y = torch.zeros(emission.d_out, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([y], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        total, count = emission.loss(y.expand(*x.shape[:2], -1), x)
        (total / count).backward()
        return total / count

    optimiser.step(closure)
    return y.detach()


def test_names_are_those_of_files() -> None:
    tried = {name: discover.emissions.load(name).TINY.emission for name in discover.emissions.names()}
    assert all(emission.name == name for name, emission in tried.items())
    assert {name for name, each in tried.items() if isinstance(each, Distribution)} == set(ALL)
