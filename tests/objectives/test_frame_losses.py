"""Losses of frames of independent bits."""

from __future__ import annotations

import math

import torch

from unrolled.objectives.losses import bernoulli, frame_losses


def test_a_frame_costs_the_sum_over_its_bits() -> None:
    p, v = torch.tensor([0.9, 0.2, 0.5]).double(), torch.tensor([1.0, 0.0, 1.0]).double()
    loss = frame_losses(torch.logit(p).view(1, 1, 3), v.view(1, 1, 3))
    torch.testing.assert_close(loss.item(), -math.log(0.9) - math.log(0.8) - math.log(0.5))


def test_padding_does_not_exist_whatever_stands_there() -> None:
    logits, targets = torch.randn(2, 4, 3), torch.randint(0, 2, (2, 4, 3)).float()
    mask = torch.tensor([[True] * 4, [True, False, False, False]])
    clean, n = bernoulli(logits, targets, mask)
    assert n.item() == 5
    by_hand = torch.nn.functional.binary_cross_entropy_with_logits(logits[mask], targets[mask], reduction="sum")
    torch.testing.assert_close(clean, by_hand)
    spoilt = logits.clone()
    spoilt[1, 1:] = math.nan
    spoilt.requires_grad_()
    targets[1, 2] = math.nan
    total, _ = bernoulli(spoilt, targets, mask)
    torch.testing.assert_close(total.detach(), clean)
    total.backward()
    assert bool(torch.isfinite(spoilt.grad).all())
    assert not spoilt.grad[1, 1:].any()


def test_all_positions_count_without_a_mask() -> None:
    total, n = bernoulli(torch.zeros(2, 3, 4), torch.ones(2, 3, 4))
    assert n.item() == 6
    torch.testing.assert_close(total.item(), 24 * math.log(2), rtol=1e-6, atol=0)


def test_very_sure_and_wrong_stays_finite() -> None:
    assert frame_losses(torch.full((1, 1, 2), 1e4), torch.zeros(1, 1, 2)).item() == 2e4
