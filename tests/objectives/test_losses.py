"""Losses against their definitions, and the padding law: what is ignored does not exist."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from unrolled.core.tokens import EMPTY
from unrolled.objectives.losses import cross_entropy, l1, mse, token_losses

B, T, V = 3, 5, 7


@pytest.fixture
def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(B, T, V, generator=generator, dtype=torch.float64)
    targets = torch.randint(1, V, (B, T), generator=generator)
    targets[0, 3:] = EMPTY
    targets[2, 1] = EMPTY
    return logits, targets


def smoothed(targets: Tensor, smoothing: float, u: Tensor) -> Tensor:
    return (1 - smoothing) * F.one_hot(targets, V) + smoothing * u  # eq. (8.3)


def test_cross_entropy_is_minus_the_log_probability_of_the_targets(batch: tuple[Tensor, Tensor]) -> None:
    logits, targets = batch
    expected = 0.0
    for b in range(B):
        for t in range(T):
            z, y = logits[b, t].tolist(), int(targets[b, t])
            expected += 0.0 if y == EMPTY else math.log(sum(map(math.exp, z))) - z[y]
    total, count = cross_entropy(logits, targets)
    assert total.item() == pytest.approx(expected, rel=1e-12)
    assert count.item() == B * T - 3


@pytest.mark.parametrize("with_prior", [False, True])
def test_cross_entropy_is_entropy_plus_divergence(batch: tuple[Tensor, Tensor], with_prior: bool) -> None:
    logits, targets = batch
    u = torch.full((V,), 1 / V, dtype=torch.float64)
    if with_prior:
        u = torch.tensor([0.0, 0.1, 0.2, 0.3, 0.1, 0.1, 0.2], dtype=torch.float64)
    p, q = smoothed(targets, 0.1, u), logits.softmax(-1)
    entropy = -torch.special.xlogy(p, p).sum(-1)
    divergence = torch.where(p > 0, p * (p.clamp_min(1e-300) / q).log(), 0.0).sum(-1)
    losses = token_losses(logits, targets, smoothing=0.1, prior=u if with_prior else None)
    torch.testing.assert_close(losses, (entropy + divergence) * (targets != EMPTY))


def test_uniform_smoothing_agrees_with_torch(batch: tuple[Tensor, Tensor]) -> None:
    logits, targets = batch
    total, _ = cross_entropy(logits, targets, smoothing=0.3)
    reference = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=EMPTY, label_smoothing=0.3,
                                reduction="sum")  # fmt: skip
    torch.testing.assert_close(total, reference)


def test_the_smoothed_loss_is_least_at_the_smoothed_distribution() -> None:
    u = torch.tensor([0.1, 0.2, 0.3, 0.05, 0.05, 0.2, 0.1], dtype=torch.float64)
    targets = torch.tensor([[4]])
    logits = smoothed(targets, 0.2, u).log().requires_grad_()
    total, _ = cross_entropy(logits, targets, smoothing=0.2, prior=u)
    total.backward()
    torch.testing.assert_close(logits.grad, torch.zeros_like(logits))


def test_a_token_outside_the_prior_may_have_probability_zero() -> None:
    logits = torch.tensor([[[-math.inf, 0.0, 1.0]]])
    total, _ = cross_entropy(logits, torch.tensor([[2]]), smoothing=0.1, prior=torch.tensor([0.0, 0.5, 0.5]))
    assert math.isfinite(total.item())


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("junk", [math.nan, math.inf, -math.inf, 1e30])
def test_ignored_positions_change_nothing(batch: tuple[Tensor, Tensor], smoothing: float, junk: float) -> None:
    logits, targets = batch
    clean = logits.clone().requires_grad_()
    dirty = logits.masked_fill((targets == EMPTY).unsqueeze(-1), junk).requires_grad_()
    totals = []
    for z in (clean, dirty):
        total, count = cross_entropy(z, targets, smoothing)
        (total / count).backward()
        totals.append(total)
    assert totals[0] == totals[1]
    assert torch.equal(clean.grad, dirty.grad)
    assert torch.equal(dirty.grad[targets == EMPTY], torch.zeros(3, V, dtype=torch.float64))


def test_token_losses_are_the_parts_of_the_total(batch: tuple[Tensor, Tensor]) -> None:
    logits, targets = batch
    losses = token_losses(logits, targets)
    assert losses.shape == (B, T)
    assert (losses[targets == EMPTY] == 0).all()
    assert losses.sum() == cross_entropy(logits, targets)[0]


def test_class_labels_count_their_zero() -> None:
    logits, labels = torch.zeros(4, 3), torch.tensor([0, 1, 2, -1])
    total, count = cross_entropy(logits, labels, ignore=-1)
    assert total.item() == pytest.approx(3 * math.log(3))
    assert count.item() == 3


def test_half_precision_logits_are_summed_in_single() -> None:
    logits = torch.zeros(1, 1000, 300, dtype=torch.bfloat16)
    total, _ = cross_entropy(logits, torch.ones(1, 1000, dtype=torch.long))
    assert total.dtype == torch.float32
    assert total.item() == pytest.approx(1000 * math.log(300), rel=1e-5)


def test_nothing_but_padding_is_zero_of_zero() -> None:
    logits = torch.full((1, 2, V), math.nan, requires_grad=True)
    total, count = cross_entropy(logits, torch.full((1, 2), EMPTY))
    total.backward()
    assert (total.item(), count.item()) == (0.0, 0)
    assert torch.equal(logits.grad, torch.zeros(1, 2, V))


@pytest.mark.parametrize(("loss", "power"), [(l1, 1), (mse, 2)])
def test_errors_under_a_mask(loss, power: int) -> None:  # type: ignore[no-untyped-def]
    y = torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[5.0, -6.0], [math.nan, 8.0]]], requires_grad=True)
    target = torch.tensor([[[0.0, 4.0], [math.nan, 1.0]], [[5.0, 6.0], [7.0, math.inf]]])
    mask = torch.tensor([[True, False], [True, False]])
    total, count = loss(y, target, mask)
    assert total.item() == 1 + 2**power + 0 + 12**power
    assert count.item() == 4  # numbers, not positions
    total.backward()
    assert torch.isfinite(y.grad).all()
    assert (y.grad[:, 1] == 0).all()


@pytest.mark.parametrize("loss", [l1, mse])
def test_errors_without_a_mask(loss) -> None:  # type: ignore[no-untyped-def]
    total, count = loss(torch.zeros(2, 3), torch.ones(2, 3))
    assert (total.item(), count.item()) == (6.0, 6)
    with pytest.raises(ValueError, match="same shape"):  # broadcasting would be a silent guess
        loss(torch.zeros(2, 3), torch.ones(2, 1))
