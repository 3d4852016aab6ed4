"""A strided front end: what stands in the padding changes nothing, and neither does how far it reaches."""

from __future__ import annotations

import torch
from torch import nn

from unrolled.layers.parts.strided import Strided


def test_padding_and_other_rows_change_nothing() -> None:
    torch.manual_seed(0)
    front = Strided(nn.Embedding(9, 3), 3, 5, stride=4)
    x = torch.randint(0, 9, (2, 19))
    mask = torch.arange(19) < torch.tensor([[19], [10]])
    y, real = front(x, mask)
    assert y.shape == (2, 5, 5)
    assert real.tolist() == [[True] * 5, [True, True, True, False, False]]
    alone, _ = front(x[1:, :10], mask[1:, :10])
    assert torch.allclose(alone[0], y[1, :3], atol=1e-6)
    other = x.clone()
    other[1, 10:] = 0
    assert torch.equal(front(other, mask)[0], y)
    assert not bool(y[1, 3:].any())


def test_a_stretch_by_hand() -> None:
    front = Strided(nn.Identity(), 1, 1, stride=2)
    with torch.no_grad():
        front.conv.weight.copy_(torch.tensor([[[1.0, 10.0, 100.0, 1000.0]]]))
        front.conv.bias.zero_()
        front.mean.weight.fill_(0.5)
    x = torch.tensor([[[1.0], [2.0], [3.0]]])
    y, _ = front(x, torch.ones(1, 3, dtype=torch.bool))
    assert y.flatten().tolist() == [0 + 10 + 200 + 3000 + 0.75, 2 + 30 + 1.5]  # v_0 = 0; the last stretch has one
