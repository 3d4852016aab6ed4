"""Losses of answers against torch, and the law of padding."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from unrolled.objectives.answers import NO_LABEL, balanced_weights, multilabel_cross_entropy
from unrolled.objectives.losses import cross_entropy, huber, l1, mse

N, C = 8, 3
JUNK = [math.nan, math.inf, -math.inf, 1e30]


@pytest.fixture
def logits() -> Tensor:
    return 2 * torch.randn(N, C, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


LABELS = torch.tensor([0, 1, 2, 1, -1, 0, -1, 2])
WEIGHTS = torch.tensor([0.5, 1.0, 4.0])
BITS = torch.tensor([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]] * 2)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_labels_agree_with_torch(logits: Tensor, smoothing: float) -> None:
    total, count = cross_entropy(logits, LABELS, smoothing=smoothing, ignore=NO_LABEL)
    torch.testing.assert_close(
        total / count, F.cross_entropy(logits, LABELS, ignore_index=-1, label_smoothing=smoothing)
    )
    assert count.item() == 6


def test_weighted_labels_agree_with_torch(logits: Tensor) -> None:
    total, count = cross_entropy(logits, LABELS, ignore=NO_LABEL, weights=WEIGHTS)
    torch.testing.assert_close(total / count, F.cross_entropy(logits, LABELS, WEIGHTS.double(), ignore_index=-1))
    assert count.item() == 0.5 + 1 + 4 + 1 + 0.5 + 4


def test_tags_are_labels_too(logits: Tensor) -> None:
    one = cross_entropy(logits.view(2, 4, C), LABELS.view(2, 4), ignore=NO_LABEL, weights=WEIGHTS)
    torch.testing.assert_close(one, cross_entropy(logits, LABELS, ignore=NO_LABEL, weights=WEIGHTS))


def test_several_labels_agree_with_torch(logits: Tensor) -> None:
    total, count = multilabel_cross_entropy(logits, BITS)
    torch.testing.assert_close(total / count, F.binary_cross_entropy_with_logits(logits, BITS.double()))
    weighted, _ = multilabel_cross_entropy(logits, BITS, WEIGHTS)
    reference = F.binary_cross_entropy_with_logits(logits, BITS.double(), pos_weight=WEIGHTS.double(), reduction="sum")
    torch.testing.assert_close(weighted, reference)
    half, _ = multilabel_cross_entropy(logits.half(), BITS)
    assert half.dtype == torch.float32
    with pytest.raises(ValueError, match="same shape"):
        multilabel_cross_entropy(logits, BITS[:, :1])


def test_numbers_agree_with_torch(logits: Tensor) -> None:
    target = torch.zeros(N, C, dtype=torch.float64)
    for ours, theirs in ((l1, F.l1_loss), (mse, F.mse_loss), (huber, F.huber_loss)):
        total, count = ours(logits, target)
        torch.testing.assert_close(total / count, theirs(logits, target))
    total, count = huber(logits, target, delta=0.3)
    torch.testing.assert_close(total / count, F.huber_loss(logits, target, delta=0.3))


MASK = torch.tensor([1, 1, 0, 1, 1, 0, 1, 1]).bool()
MASKED = {
    "labels": lambda y: cross_entropy(y, LABELS.masked_fill(~MASK, -1), ignore=NO_LABEL, weights=WEIGHTS),
    "several": lambda y: multilabel_cross_entropy(y, BITS, WEIGHTS, MASK),
    "each": lambda y: multilabel_cross_entropy(y, BITS, mask=MASK[:, None].expand(-1, C)),
    "l1": lambda y: l1(y, y.detach().flip(1), MASK),
    "mse": lambda y: mse(y, y.detach().flip(1), MASK),
    "huber": lambda y: huber(y, y.detach().flip(1), MASK),
}


@pytest.mark.parametrize("loss", MASKED.values(), ids=MASKED)
@pytest.mark.parametrize("junk", JUNK)
def test_what_is_not_real_changes_nothing(logits: Tensor, loss, junk: float) -> None:
    results = []
    for entry in (logits.clone(), logits.masked_fill(~MASK.unsqueeze(-1), junk)):
        total, count = loss(entry.requires_grad_())
        (total / count).backward()
        results.append((total, count, entry.grad))
    for clean, dirty in zip(*results, strict=True):
        assert torch.equal(clean, dirty)
    assert (results[0][2][~MASK] == 0).all()
    assert (results[0][2][MASK] != 0).any()
    alone, count = loss(logits)
    assert (alone.item(), count.item()) == (results[0][0].item(), results[0][1].item())


def test_junk_in_targets_changes_nothing(logits: Tensor) -> None:
    dirty = BITS.double().masked_fill(~MASK.unsqueeze(-1), math.nan)
    torch.testing.assert_close(
        multilabel_cross_entropy(logits, dirty, mask=MASK), multilabel_cross_entropy(logits, BITS, mask=MASK)
    )


def test_nothing_real_is_zero_of_zero(logits: Tensor) -> None:
    z = logits.requires_grad_()
    total, count = cross_entropy(z, torch.full((N,), -1), ignore=NO_LABEL, weights=WEIGHTS)
    total.backward()
    assert (total.item(), count.item()) == (0, 0)
    assert (z.grad == 0).all()


def test_batches_add_up(logits: Tensor) -> None:
    whole = cross_entropy(logits, LABELS, ignore=NO_LABEL, weights=WEIGHTS)
    parts = [
        cross_entropy(logits[i : i + 3], LABELS[i : i + 3], ignore=NO_LABEL, weights=WEIGHTS) for i in range(0, N, 3)
    ]
    torch.testing.assert_close(whole, tuple(sum(part) for part in zip(*parts, strict=True)))


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_balanced_weights(power: float) -> None:
    n = torch.tensor([100, 25, 4, 0])
    w = balanced_weights(n, power)
    assert (w * n).sum().item() == pytest.approx(n.sum().item(), rel=1e-6)
    assert (w[2] / w[0]).item() == pytest.approx(25**power, rel=1e-6)
    assert w[3] == 0
    if power == 1:  # scikit-learn's "balanced", with the classes that occur
        from sklearn.utils.class_weight import compute_class_weight

        y = [0] * 100 + [1] * 25 + [2] * 4
        wanted = compute_class_weight("balanced", classes=np.arange(3), y=y)
        assert w[:3].tolist() == pytest.approx(wanted.tolist(), rel=1e-6)
