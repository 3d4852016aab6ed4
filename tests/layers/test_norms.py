"""Normalisations, the gated network and grouped heads against their formulas."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.core.errors import UsageError
from unrolled.layers.attention.attention import MultiHead
from unrolled.layers.attention.feed_forward import GatedFeedForward, feed_forward_named
from unrolled.layers.attention.grouped import GroupedHeads
from unrolled.layers.attention.norms import NORMS, DeviationNorm, RMSNorm


def test_rms_is_that_of_torch() -> None:
    z, ours, theirs = torch.randn(3, 4, 6), RMSNorm(6, 1e-6), nn.RMSNorm(6, 1e-6)
    with torch.no_grad():
        ours.weight.copy_(torch.randn(6))
        theirs.weight.copy_(ours.weight)
    assert torch.allclose(ours(z), theirs(z), atol=1e-6)


def test_the_deviation_is_that_of_the_sample() -> None:
    z = torch.tensor([[1.0, 2.0, 4.0]])
    s = z.std()  # divided by p - 1
    assert torch.allclose(DeviationNorm(3, 0.1)(z), (z - z.mean()) / (s + 0.1))
    x = torch.ones(1, 3, requires_grad=True)
    DeviationNorm(3)(x).sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()


def test_each_name_is_a_norm() -> None:
    z = torch.randn(2, 5)
    assert {name: tuple(make(5, 1e-5)(z).shape) for name, make in NORMS.items()} == dict.fromkeys(NORMS, (2, 5))


def test_the_gated_network() -> None:
    layer, x = feed_forward_named("swiglu", 4, 6), torch.randn(2, 3, 4)
    assert isinstance(layer, GatedFeedForward)
    a = x @ layer.W_1.weight.T
    assert torch.allclose(layer(x), (a * a.sigmoid() * (x @ layer.W_3.weight.T)) @ layer.W_2.weight.T, atol=1e-6)


def test_grouped_heads_are_heads_with_equal_keys() -> None:
    grouped, whole, x = GroupedHeads(8, 4, 2), MultiHead(8, 4), torch.randn(2, 5, 8)
    m = grouped.d_key
    with torch.no_grad():
        for at in (0, 2 * m):  # keys, then values
            rows = grouped.W_kv.weight[at : at + 2 * m].view(2, m, 8).repeat_interleave(2, 0).flatten(0, 1)
            whole.W_kv.weight[2 * at : 2 * at + 4 * m] = rows
    for one, other in zip(grouped.key_value(x), whole.key_value(x)):
        assert torch.allclose(one, other, atol=1e-6)
    with pytest.raises(UsageError, match="expected a divisor of n_heads = 4"):
        GroupedHeads(8, 4, 3)
