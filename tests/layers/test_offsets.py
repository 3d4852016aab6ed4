"""Numbers that share a large offset: distances, scales and variances are those of exact arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from torch.nn import functional as F

from unrolled.core.spec import Sizes
from unrolled.inspect.tools.looking import principal_plane
from unrolled.layers.counting import autoregression
from unrolled.layers.counting.neighbours import nearest, resampled
from unrolled.models import minirocket
from unrolled.models import nearest as nearest_model

OFFSETS = [0.0, 1e4, 1e6]


def series(n: int, offset: float, T: int = 40, D: int = 2) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Waves of amplitude 1 of three periods, which are the classes, far away from 0."""
    random = torch.Generator().manual_seed(n)
    y = torch.randint(3, (n,), generator=random)
    t = torch.arange(T)[None, :, None]
    x = torch.sin(t / (1.5 + 0.2 * y[:, None, None])) + 0.4 * torch.randn(n, T, D, generator=random)
    return x + offset, torch.ones(n, T, dtype=torch.bool), y


@pytest.mark.parametrize("offset", OFFSETS)
def test_the_nearest_is_that_of_exact_distances(offset: float) -> None:
    x, _, _ = series(80, offset)
    new, _, _ = series(81, offset)
    exact = np.square(new.numpy()[:, None].astype(np.longdouble) - x.numpy()[None]).sum((2, 3))  # [81, 80]
    assert nearest(new, x).tolist() == exact.argmin(1).tolist()


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("normalise", [False, True])
def test_nearest_answers_as_in_double_precision(offset: float, normalise: bool) -> None:
    x, mask, y = series(80, offset)
    new, there, _ = series(81, offset)
    model = nearest_model.make(nearest_model.Config(normalise=normalise), Sizes(2, 3))
    model.solve([(x, mask, y)])

    def flat(values: torch.Tensor) -> np.ndarray:
        values = values.double()
        if normalise:
            values = (values - values.mean(1, keepdim=True)) / values.std(1, correction=0, keepdim=True)
        return values.flatten(1).numpy()

    exact = y.numpy()[[np.square(flat(x) - row).sum(1).argmin() for row in flat(new)]]
    assert model(new, there)[0][:, 0].argmax(-1).tolist() == exact.tolist()


@pytest.mark.parametrize("level", [0.0, 1e-3, 1.0, 1e6])
def test_a_series_that_never_varies_is_zero_and_one_that_does_is_not(level: float) -> None:
    flat = torch.full((1, 30, 1), level)
    assert not nearest_model.normalised(resampled(flat, torch.ones(1, 30, dtype=torch.bool), 17)).any()
    spacing = max(level, 1e-30) * 1e-4
    wave = flat + spacing * torch.sin(torch.arange(30.0))[None, :, None]
    z = nearest_model.normalised(wave)
    assert float(z.double().square().mean()) == pytest.approx(1, abs=1e-5)
    assert float(z.double().mean()) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("offset", OFFSETS)
def test_filters_of_weight_zero_see_no_offset(offset: float) -> None:
    x = series(6, offset, D=1)[0][..., 0]  # [6, T]
    mixed = x[:, None].expand(-1, 84, -1).contiguous()  # [6, 84, T]
    exact = F.conv1d(mixed.double(), minirocket.FILTERS[:, None].double(), dilation=2, groups=84)
    inside = minirocket._filtered(mixed, 2)[..., 8:-8]
    torch.testing.assert_close(inside.double(), exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("small", [0, 1 << 30])
def test_autoregression_far_from_zero(offset: float, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to the weights, against least squares on centred data."""
    monkeypatch.setattr(autoregression, "SMALL", small)
    random = np.random.default_rng(0)
    x = np.zeros(400)
    for t in range(2, 400):
        x[t] = 1.2 * x[t - 1] - 0.6 * x[t - 2] + random.standard_normal()
    W, b = autoregression.least_squares([x[:, None] + offset], 1, slice(-1, None), 2)
    lagged = np.column_stack([x[:-2], x[1:-1], np.ones(398)])
    exact = np.linalg.lstsq(lagged, x[2:], rcond=None)[0]
    np.testing.assert_allclose(W[:, 0, 0], exact[:2], rtol=1e-6)
    assert b[0] == pytest.approx(exact[2] + offset * (1 - exact[:2].sum()), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("offset", OFFSETS)
def test_principal_components_far_from_zero(offset: float) -> None:
    points = torch.randn(200, 5, generator=torch.Generator().manual_seed(0)) * torch.tensor([5.0, 2, 1, 1, 1]) + offset
    exact = PCA(2, svd_solver="full").fit(points.double().numpy()).explained_variance_ratio_
    assert principal_plane(points).shares == pytest.approx(exact.tolist(), rel=1e-9)


def test_resampling_keeps_what_never_varies() -> None:
    x = torch.full((1, 7, 1), 1e6 + 0.3)
    assert (resampled(x, torch.ones(1, 7, dtype=torch.bool), 20) == x[0, 0, 0]).all()
    assert math.isclose(float(x[0, 0, 0]), 1e6 + 0.3, rel_tol=1e-6)
