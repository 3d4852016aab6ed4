"""The convolutional encoder against plain torch operations, and what its regions see."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from unrolled.core import discover
from unrolled.core.errors import UsageError
from unrolled.core.spec import Sizes
from unrolled.core.trace import trace
from unrolled.testing import check_encoder

CNN = discover.models.load("cnn")


def body(d_in: int, **settings: Any) -> Any:
    torch.manual_seed(0)
    return CNN.make(CNN.Config(**settings), Sizes(d_in, 2)).double().eval()


def layer_norm(z: torch.Tensor, norm: Any) -> torch.Tensor:
    """Over the channels of each pixel, written out."""
    mean, var = z.mean(1, keepdim=True), z.var(1, keepdim=True, unbiased=False)
    return (z - mean) / (var + norm.eps).sqrt() * norm.weight[:, None, None] + norm.bias[:, None, None]


def test_it_is_the_equations() -> None:
    net = body(3 * 6, d_first=4, n_stages=2, position="none")
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    image = torch.randn(2, 3, 7, 6, dtype=torch.float64)
    x = image.permute(0, 2, 3, 1).flatten(2)  # [B, H, W C]
    y, mask = net(x, torch.ones(2, 7, dtype=torch.bool))
    z = F.relu(F.conv2d(image, net.first.weight, net.first.bias, stride=2, padding=2))
    for block, s in zip(net.blocks, (1, 2)):
        u = F.conv2d(z, block.first.weight, block.first.bias, stride=s, padding=1)
        u = F.conv2d(F.relu(layer_norm(u, block.norm_1)), block.second.weight, block.second.bias, padding=1)
        if block.P is not None:
            z = layer_norm(F.conv2d(z, block.P.W[:, :, None, None], block.P.b, stride=s), block.P.norm)
        z = F.relu(layer_norm(u, block.norm_2) + z)
    wanted = layer_norm(z, net.norm)  # [B, 8, 2, 2]
    torch.testing.assert_close(y, wanted.flatten(2).transpose(1, 2))
    assert mask.all()
    assert y.shape == (2, 4, net.d_out)


def test_regions_come_row_by_row() -> None:
    net = body(8, channels=1, d_first=4, n_stages=1, position="none")
    dark = torch.zeros(1, 16, 8, dtype=torch.float64)
    spot = dark.clone()
    spot[0, 0, 7] = 1.0  # the top right pixel
    mask = torch.ones(1, 16, dtype=torch.bool)
    with trace() as seen:
        change = (net(spot, mask)[0] - net(dark, mask)[0]).norm(dim=-1)[0].view(8, 4)
    assert seen["grid"] == [(8, 4), (8, 4)]
    # it is in the first convolution of regions (0, 3) and (1, 3), and two more reach two regions further each way
    wanted = torch.zeros(8, 4, dtype=torch.bool)
    wanted[:4, 1:] = True
    assert torch.equal(change > 1e-9, wanted)


@pytest.mark.parametrize("position", ["sinusoid", "learned"])
def test_equal_regions_differ_by_their_place(position: str) -> None:
    net = body(12 * 3, d_first=4, n_stages=2, position=position)
    with torch.no_grad():
        net.norm.weight.zero_()  # so that nothing but the place is left
    y, _ = net(torch.zeros(1, 12, 36, dtype=torch.float64), torch.ones(1, 12, dtype=torch.bool))
    apart = torch.cdist(y[0], y[0]) + torch.eye(9)
    assert apart.min() > 1e-3


@pytest.mark.parametrize("position", ["sinusoid", "learned", "none"])
def test_images_of_unlike_heights(position: str) -> None:
    torch.manual_seed(0)
    net = CNN.make(CNN.Config(d_first=4, n_stages=3, position=position), Sizes(5 * 3, 2))
    x = torch.randn(3, 13, 15, dtype=torch.float64)
    mask = torch.arange(13) < torch.tensor([13, 9, 2])[:, None]
    assert "padding" in check_encoder(net, x, mask)
    _, regions = net.double()(x, mask)
    assert regions.sum(1).tolist() == [2, 2, 1]  # ceil(h / 8) rows of one column


def test_the_width_must_be_whole_pixels() -> None:
    with pytest.raises(UsageError, match="rows of 28 numbers cannot be pixels of 3 channels; set channels of cnn to 1"):
        body(28, channels=3)


def test_channels_that_are_not_said() -> None:
    assert [body(width).channels for width in (48 * 3, 28, 1)] == [3, 1, 1]


def test_a_table_of_positions_ends() -> None:
    net = body(8 * 3, d_first=4, n_stages=1, position="learned", n_positions=2)
    with pytest.raises(UsageError, match="has 4 rows of regions, but the table of positions has 2"):
        net(torch.zeros(1, 8, 24, dtype=torch.float64), torch.ones(1, 8, dtype=torch.bool))


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 6, 8, 12])
def test_few_channels_have_gradients_too(width: int) -> None:
    """A convolution of single pixels with a stride ended the process where channels were few."""
    for size in (7, 24, 33):
        net = CNN.make(CNN.Config(d_first=width), Sizes(size * 3, 2))
        y, _ = net(torch.rand(16, size, size * 3), torch.ones(16, size, dtype=torch.bool))
        y.square().sum().backward()
        assert all(parameter.grad.isfinite().all() for parameter in net.parameters())


def test_resized_keeps_the_last_width() -> None:
    assert body(30, **CNN.Config().resized(256).model_dump()).d_out == 256


def test_a_pale_region_differs_from_a_strong_one() -> None:
    """LN alone would take all strengths of one colour for the same."""
    net = body(12 * 3, d_first=8, n_stages=1, position="none")
    mask = torch.ones(1, 12, dtype=torch.bool)
    strong = torch.ones(1, 12, 36, dtype=torch.float64)
    a, b = (net(scale * strong, mask)[0][0, 14] for scale in (1.0, 0.2))  # a region in the middle
    assert (a - b).norm() > 0.1 * a.norm()


def test_padding_may_stand_beyond_the_table_of_rows() -> None:
    """A map of 4 rows of which 2 are real: the table of 2 rows serves, and its rows stand at the real ones."""
    net = body(8 * 3, d_first=4, n_stages=1, position="learned", n_positions=2)
    x = torch.randn(2, 8, 24, dtype=torch.float64)
    mask = torch.arange(8) < torch.tensor([[4], [3]])
    padded, regions = net(x, mask)
    alone, _ = net(x[:1, :4], mask[:1, :4])
    torch.testing.assert_close(padded[0][regions[0]], alone[0])
    with pytest.raises(UsageError, match="has 4 rows of regions, but the table of positions has 2"):
        net(x, torch.arange(8) < torch.tensor([[8], [3]]))  # the tallest image counts
