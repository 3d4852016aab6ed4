"""Metrics of numbers against scikit-learn and by hand."""

from __future__ import annotations

import math

import pytest
import torch
from sklearn import metrics as reference

from unrolled.core.errors import DataError
from unrolled.objectives.numbers import decibels, mean_absolute_error, r2, root_mean_square_error, snr_gain


@pytest.mark.parametrize("shape", [(50,), (50, 3)])
def test_against_scikit_learn(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    target = torch.randn(shape, generator=generator) + 100
    y = target + 0.5 * torch.randn(shape, generator=generator)
    assert r2(y, target) == pytest.approx(reference.r2_score(target.double(), y.double()), abs=1e-9)
    assert mean_absolute_error(y, target) == pytest.approx(reference.mean_absolute_error(target.double(), y.double()))
    assert root_mean_square_error(y, target) == pytest.approx(
        reference.mean_squared_error(target.double().flatten(), y.double().flatten()) ** 0.5
    )


def test_the_mean_has_r2_zero_and_a_constant_truth_is_no_division_by_zero() -> None:
    target = torch.tensor([[1.0, 7.0], [2.0, 7.0], [6.0, 7.0]])
    assert r2(torch.full((3, 1), 3.0), target[:, :1]) == pytest.approx(0)
    assert r2(target, target) == 1
    assert r2(torch.tensor([1.0, 2.0]), torch.tensor([5.0, 5.0])) == 0
    assert r2(target + torch.tensor([0.0, 1.0]), target) == 0.5


@pytest.mark.parametrize("junk", [math.nan, math.inf, 1e30])
def test_padding_never_counts(junk: float) -> None:
    generator = torch.Generator().manual_seed(0)
    clean, noisy, y = torch.randn(3, 4, 6, 2, generator=generator).double()
    mask = torch.arange(6) < torch.tensor([6, 3, 1, 0])[:, None]
    figures = (mean_absolute_error, root_mean_square_error, r2)
    alone = [figure(y[mask], clean[mask]) for figure in figures] + [snr_gain(y[mask], noisy[mask], clean[mask])]
    clean, noisy, y = (part.masked_fill(~mask.unsqueeze(-1), junk) for part in (clean, noisy, y))
    found = [figure(y, clean, mask) for figure in figures] + [snr_gain(y, noisy, clean, mask)]
    assert found == pytest.approx(alone)


def test_r2_of_series_is_that_of_their_steps() -> None:
    random = torch.Generator().manual_seed(0)
    y, target = torch.randn(2, 3, 5, 2, generator=random).double().unbind()
    assert r2(y, target) == pytest.approx(reference.r2_score(target.flatten(0, 1), y.flatten(0, 1)))


def test_decibels() -> None:
    clean = torch.sin(torch.arange(1000.0))[None, :, None]
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(0))
    assert snr_gain(clean + 0.1 * noise, clean + noise, clean) == pytest.approx(20, abs=1e-4)
    assert snr_gain(clean + noise, clean + noise, clean) == 0
    assert snr_gain(clean + 0.3 * noise, clean + 0.7 * noise, clean) == pytest.approx(20 * math.log10(7 / 3), abs=1e-4)
    assert snr_gain(clean, clean + noise, clean) == math.inf
    assert decibels(0.0, 1.0) == -math.inf


def test_what_cannot_be_measured_is_an_error() -> None:
    nothing = torch.zeros(2, 3, dtype=torch.bool)
    y = torch.zeros(2, 3, 1)
    for figure in (mean_absolute_error, root_mean_square_error, r2):
        with pytest.raises(DataError, match="nothing to evaluate"):
            figure(y, y, nothing)
    with pytest.raises(DataError, match="nothing to evaluate"):
        snr_gain(y, y, y, nothing)
    with pytest.raises(ValueError, match="same shape"):
        r2(y, y[:1])


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6])
def test_an_offset_that_all_share_changes_nothing(offset: float) -> None:
    """Numbers of double precision, as the tasks give them, against exact arithmetic without the offset."""
    random = torch.Generator().manual_seed(0)
    clean = torch.randn(3000, 2, generator=random, dtype=torch.float64)
    noisy = clean + 0.5 * torch.randn(3000, 2, generator=random, dtype=torch.float64)
    y = clean + 0.1 * torch.randn(3000, 2, generator=random, dtype=torch.float64)
    far = (y + offset, clean + offset)
    assert r2(*far) == pytest.approx(r2(y, clean), rel=1e-7)
    assert root_mean_square_error(*far) == pytest.approx(0.1, rel=0.05)
    gain = snr_gain(y + offset, noisy + offset, clean + offset)
    assert gain == pytest.approx(snr_gain(y, noisy, clean), rel=1e-7)
