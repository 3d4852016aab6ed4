"""Calibration: bins by hand, temperatures against a search, and a miscalibrated model made right."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from unrolled.core.errors import DataError
from unrolled.objectives.calibration import (
    expected_calibration_error,
    fit_temperature,
    fit_temperature_of_bits,
    reliability,
)


def drawn(scale: float, n: int = 4000) -> tuple[Tensor, Tensor]:
    """Labels that follow softmax(z), and logits that are `scale` times too large."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(n, 4, generator=generator)
    labels = torch.multinomial(z.softmax(-1), 1, generator=generator)[:, 0]
    return scale * z, labels


def test_bins_by_hand() -> None:
    rows = [[0.55, 0.45], [0.6, 0.4], [0.1, 0.9], [1.0, 0.0], [math.nan, math.nan]]
    p = torch.tensor(rows, dtype=torch.float64)
    bins = reliability(p, torch.tensor([0, 1, 1, 0, -1]), n_bins=5)
    assert bins.n.tolist() == [0, 0, 2, 0, 2]  # 0.6 is the upper end of its bin
    assert bins.confidence.tolist() == pytest.approx([0, 0, 0.575, 0, 0.95])
    assert bins.accuracy.tolist() == pytest.approx([0, 0, 0.5, 0, 1.0])
    assert expected_calibration_error(bins) == pytest.approx((2 * 0.075 + 2 * 0.05) / 4)


def test_a_bin_of_one_example_and_the_ends_of_the_range() -> None:
    p = torch.tensor([[0.5, 0.5], [0.3, 0.7], [0.0, 1.0]], dtype=torch.float64)
    bins = reliability(p, torch.tensor([0, 0, 1]), n_bins=10)
    assert bins.n.tolist() == [0, 0, 0, 0, 1, 0, 1, 0, 0, 1]
    assert bins.confidence[[4, 6, 9]].tolist() == pytest.approx([0.5, 0.7, 1.0])
    assert bins.accuracy[[4, 6, 9]].tolist() == [1.0, 0.0, 1.0]


def test_nothing_to_measure() -> None:
    with pytest.raises(DataError, match="nothing to evaluate"):
        expected_calibration_error(reliability(torch.rand(2, 2), torch.tensor([-1, -1])))


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_a_temperature_undoes_a_wrong_scale(scale: float) -> None:
    z, labels = drawn(scale)
    T = fit_temperature(z, labels)
    assert scale * 0.93 < T < scale * 1.07
    before = expected_calibration_error(reliability(z.softmax(-1), labels))
    after = expected_calibration_error(reliability((z / T).softmax(-1), labels))
    assert after < 0.03
    assert scale == 1 or after < before / 3


@pytest.mark.parametrize("scale", [0.3, 4.0])
def test_it_is_the_minimum(scale: float) -> None:
    z, labels = drawn(scale, n=300)
    T = fit_temperature(z, labels)
    share = 1 / 301  # of one label more, that is any
    nats = [F.cross_entropy(z.double() / t, labels, label_smoothing=share).item() for t in (T * 0.999, T, T * 1.001)]
    assert nats[1] == min(nats)
    beta = torch.tensor(1 / T, dtype=torch.float64, requires_grad=True)
    F.cross_entropy(beta * z.double(), labels, label_smoothing=share).backward()
    assert abs(beta.grad.item()) < 1e-8


def test_bits_likewise() -> None:
    z, _ = drawn(1.0)
    v = torch.bernoulli(z.sigmoid(), generator=torch.Generator().manual_seed(1))
    assert fit_temperature_of_bits(3 * z, v) == pytest.approx(3, rel=0.07)
    mask = torch.arange(len(z)) % 2 == 0
    junk = (3 * z).masked_fill(~mask[:, None], math.nan)
    assert fit_temperature_of_bits(junk, v, mask) == pytest.approx(fit_temperature_of_bits(3 * z[mask], v[mask]))


@pytest.mark.parametrize("n", [1, 9, 99])
def test_few_labels_make_nobody_endlessly_sure(n: int) -> None:
    """All right: of n + 1 labels one is either class, so the right one has probability (n + 1/2) / (n + 1)."""
    z = torch.tensor([[3.0, 0.0]] * n)
    p = (z / fit_temperature(z, torch.zeros(n, dtype=torch.long))).softmax(-1)
    assert p[0, 0].item() == pytest.approx((n + 0.5) / (n + 1))
    bits = fit_temperature_of_bits(z[:, :1], torch.ones(n, 1))
    assert (z[0, 0] / bits).sigmoid().item() == pytest.approx((n + 0.5) / (n + 1))


def test_limits() -> None:
    z, labels = drawn(1.0)
    sure = F.one_hot(z.argmax(-1), 4).float()
    assert fit_temperature(0.1 * sure, z.argmax(-1)) == pytest.approx(0.05)  # always right
    assert fit_temperature(sure, z.argmin(-1)) == pytest.approx(20)  # always wrong
    assert fit_temperature(z, torch.full_like(labels, -1)) == 1
    assert fit_temperature_of_bits(z[:0], z[:0]) == 1
    with pytest.raises(DataError, match="cannot be fitted"):
        fit_temperature(z.index_fill(0, torch.tensor([3]), math.nan), labels)


def test_impossible_classes_and_places_without_label_do_no_harm() -> None:
    z, labels = drawn(2.0)
    wider = torch.cat([z, torch.full((len(z), 1), -math.inf)], -1)
    assert fit_temperature(wider, labels) == pytest.approx(fit_temperature(z, labels))
    junk = torch.cat([z, torch.full((5, 4), math.nan)])
    assert fit_temperature(junk, F.pad(labels, (0, 5), value=-1)) == pytest.approx(fit_temperature(z, labels))


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6])
def test_an_offset_of_all_logits_changes_nothing(offset: float) -> None:
    z, y = drawn(3.0)
    assert fit_temperature(z.double() + offset, y) == pytest.approx(fit_temperature(z, y), rel=1e-6)
