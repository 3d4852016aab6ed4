"""The mixture of logistics against the equation of the page, and where plain arithmetic fails."""

from __future__ import annotations

import math

import torch

from unrolled.decode.config import Decoding
from unrolled.emissions.logistic_mixture import LogisticMixture


def places(levels: int) -> torch.Tensor:
    return 2 * torch.arange(levels).double() / (levels - 1) - 1


def test_the_levels_sum_to_one() -> None:
    torch.manual_seed(0)
    for levels in (2, 8, 256, 65536):
        emission, x = LogisticMixture(3, levels), places(levels)
        for scale in (1.0, 10.0):
            y = (torch.randn(9, dtype=torch.float64) * scale).expand(levels, -1)
            assert abs(float(emission.log_mass(y, x).exp().sum()) - 1) < 1e-9


def test_as_the_equation_says() -> None:
    emission, x = LogisticMixture(2, 8), places(8)
    logits, mu, s = (0.3, -0.2), (-0.1, 0.4), (0.2, 0.05)
    y = torch.tensor([*logits, *mu, *map(math.log, s)], dtype=torch.float64)
    weights = [math.exp(each) for each in logits]

    def below(at: float) -> float:  # the mixture's distribution function
        parts = [w / (1 + math.exp(-(at - m) / c)) for w, m, c in zip(weights, mu, s)]
        return sum(parts) / sum(weights)

    for c, place in enumerate(x.tolist()):
        low = 0.0 if c == 0 else below(place - 1 / 7)
        high = 1.0 if c == 7 else below(place + 1 / 7)
        assert math.isclose(
            float(emission.log_mass(y, torch.tensor(place, dtype=torch.float64)).exp()), high - low, rel_tol=1e-9
        )


def test_far_and_narrow_in_single_precision() -> None:
    emission = LogisticMixture(1, 65536)
    y = torch.tensor([[0.0, 0.9, -30.0], [0.0, -50.0, -3.0], [0.0, 1e4, 40.0]], requires_grad=True)
    losses = emission.losses(y[None], torch.tensor([[[-0.9], [1.0], [0.0]]]))
    losses.sum().backward()
    assert losses.isfinite().all()
    assert y.grad is not None
    assert y.grad.isfinite().all()


def test_draws_are_levels_and_temperature_zero_is_the_likeliest_component() -> None:
    emission = LogisticMixture(2, 8)
    y = torch.tensor([[2.0, 0.0, 1 / 7, -1.0, -2.0, -2.0]]).expand(500, -1)
    noise = torch.rand(500, 2, generator=torch.Generator().manual_seed(0))
    drawn = emission.chooser(Decoding())(y, torch.zeros(500, 1, 1, dtype=torch.float64), noise)
    assert torch.isin(drawn[:, 0].mul(7 / 2).add(3.5).round(decimals=9), torch.arange(8.0, dtype=torch.float64)).all()
    assert len(drawn.unique()) > 3
    still = emission.chooser(Decoding(temperature=0))(y, torch.zeros(500, 1, 1), noise)
    assert torch.allclose(still, torch.tensor(1 / 7))


def test_the_density_is_the_limit_of_the_mass() -> None:
    torch.manual_seed(1)
    fine, y = LogisticMixture(3, 1 << 20), torch.randn(9, dtype=torch.float64)
    x = places(1 << 20)[1 << 19]
    assert torch.isclose(fine.density(y, x), fine.log_mass(y, x) - math.log(2 * fine.half), atol=1e-6)
