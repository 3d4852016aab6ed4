"""A model of bags is its parts: each instance by itself, then a readout over instances."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.core import discover
from unrolled.core.trace import trace
from unrolled.layers.attention.readout import readout_named
from unrolled.layers.parts import bags as parts
from unrolled.layers.parts.bags import BagReader
from unrolled.layers.readouts.max import Max
from unrolled.layers.recurrent.cells import GRU
from unrolled.layers.recurrent.recurrent import Recurrent

POOLINGS = [name for name in discover.readouts.names() if not readout_named(name, 4).ordered]


def made(pooling: str = "attention") -> BagReader:
    torch.manual_seed(0)
    return BagReader(nn.Linear(3, 5), Recurrent(GRU(5, 4)), Max(4), readout_named(pooling, 4), nn.Linear(4, 2))


def some() -> tuple[torch.Tensor, torch.Tensor]:
    """Two bags, of three instances and of two, of at most four steps."""
    torch.manual_seed(1)
    lengths = torch.tensor([[4, 1, 3], [2, 3, 0]])
    mask = torch.arange(4) < lengths[..., None]  # [2, 3, 4]
    return torch.randn(2, 3, 4, 3).masked_fill(~mask[..., None], torch.nan), mask


@pytest.mark.parametrize("pooling", POOLINGS)
def test_equals_its_parts_one_by_one(pooling: str) -> None:
    model, (x, mask) = made(pooling), some()
    y, out = model(x, mask)
    assert y.shape == (2, 1, 2)
    assert out.all()
    for b in range(2):
        h = torch.stack([_alone(model, x[b, i][m]) for i, m in enumerate(mask[b]) if m.any()])  # [I, D]
        alone = model.head(model.pooling(h[None], torch.ones(1, len(h), dtype=torch.bool)))
        assert torch.allclose(y[b], alone, atol=1e-6)


def _alone(model: BagReader, x: torch.Tensor) -> torch.Tensor:
    assert model.embedding is not None
    z, _ = model.body(model.embedding(x)[None])
    return z[0].amax(0)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_the_order_of_instances_does_not_matter(pooling: str) -> None:
    model, (x, mask) = made(pooling), some()
    turned = [2, 0, 1]
    assert torch.allclose(model(x, mask)[0], model(x[:, turned], mask[:, turned])[0], atol=1e-6)


def test_without_gradients_some_instances_are_read_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model, (x, mask) = made(), some()
    whole, read = model(x, mask)[0], []
    model.body.register_forward_pre_hook(lambda _, given: read.append(len(given[0])))
    monkeypatch.setattr(parts, "POSITIONS", 8)
    with torch.no_grad():
        assert torch.allclose(model(x, mask)[0], whole, atol=1e-6)
    assert read == [2, 2, 1]


def test_padding_gives_no_gradient_and_every_instance_does() -> None:
    model, (x, mask) = made("mean"), some()
    x = x.nan_to_num(7.0).requires_grad_()
    model(x, mask)[0].sum().backward()
    assert x.grad is not None
    assert (x.grad[~mask] == 0).all()
    assert (x.grad.abs().sum((2, 3)) > 0).tolist() == mask.any(2).tolist()


def test_what_is_noted_are_the_weights_of_instances() -> None:
    model, (x, mask) = made("hopfield"), some()
    with torch.no_grad(), trace() as seen:
        model(x, mask)
    assert list(seen) == ["attention"]
    [weights] = seen["attention"]
    assert weights.shape == (2, 1, 1, 3)
    assert torch.allclose(weights.sum(-1), torch.ones(2, 1, 1))
    assert float(weights[1, 0, 0, 2]) == 0.0
