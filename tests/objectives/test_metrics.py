"""Metrics from totals and counts, on numbers that can be checked by head."""

from __future__ import annotations

import math

import pytest
import torch

from unrolled.core.errors import DataError
from unrolled.objectives import metrics


def test_one_total_in_every_unit() -> None:
    total = 100 * math.log(16)  # 100 tokens at 4 bits
    assert metrics.nats_per_token(total, 100) == pytest.approx(math.log(16))
    assert metrics.perplexity(total, 100) == pytest.approx(16)
    assert metrics.bits_per_character(total, n_chars=400) == pytest.approx(1)
    assert metrics.bits_per_byte(total, n_bytes=800) == pytest.approx(0.5)
    assert metrics.root_mean_square(27.0, 3) == 3.0


def test_tensors_are_accepted_and_plain_floats_returned() -> None:
    value = metrics.nats_per_token(torch.tensor(6.0), torch.tensor(3))
    assert type(value) is float
    assert value == 2.0


def test_a_hopeless_perplexity_is_infinite() -> None:
    assert metrics.perplexity(1e6, 1) == metrics.perplexity(math.inf, 1) == metrics.perplexity(709.8, 1) == math.inf
    assert metrics.perplexity(709.7, 1) == pytest.approx(math.exp(709.7))


def test_nothing_to_measure_is_said() -> None:
    with pytest.raises(DataError, match="nothing to evaluate"):
        metrics.perplexity(0.0, 0)


def test_accuracy_skips_what_is_ignored_even_nan() -> None:
    logits = torch.tensor([[[0.0, 1.0, 2.0], [9.0, 1.0, 0.0], [math.nan] * 3]])
    right, count = metrics.accuracy(logits, torch.tensor([[2, 1, 0]]))
    assert (right.item(), count.item()) == (1, 2)
    right, count = metrics.accuracy(torch.eye(3), torch.tensor([0, 1, 0]), ignore=-1)
    assert (right.item(), count.item()) == (2, 3)
