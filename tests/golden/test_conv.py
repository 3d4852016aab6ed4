"""The convolution family against torch.nn.Conv1d, against hand-computed cases, and against published counts."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

from unrolled.core.spec import Ports
from unrolled.layers.conv.conv import CausalConv, NormedConv
from unrolled.runs.build import build, count_parameters
from unrolled.runs.config import Ends, RunConfig

SHAPES = [(1, 1), (2, 1), (2, 8), (3, 1), (3, 4), (5, 3)]  # kernel, dilation


def twin(layer: CausalConv) -> nn.Conv1d:
    """torch's convolution with the same weights."""
    conv = nn.Conv1d(
        layer.d_in, layer.d_out, layer.kernel, dilation=layer.dilation, bias=layer.bias is not None, dtype=torch.float64
    )
    with torch.no_grad():
        conv.weight.copy_(layer.weight.transpose(1, 2))
        if layer.bias is not None and conv.bias is not None:
            conv.bias.copy_(layer.bias)
    return conv


def padded(conv: nn.Conv1d, x: Tensor) -> Tensor:
    """Causal by padding on the left, as the lecture notebook does it."""
    (k,), (d,) = conv.kernel_size, conv.dilation
    y: Tensor = conv(F.pad(x.transpose(1, 2), ((k - 1) * d, 0))).transpose(1, 2)
    return y


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no-bias"])
@pytest.mark.parametrize(("kernel", "dilation"), SHAPES)
def test_outputs_and_gradients_are_those_of_a_padded_conv1d(kernel: int, dilation: int, bias: bool) -> None:
    torch.manual_seed(1)
    layer = CausalConv(3, 4, kernel, dilation, bias).double()
    conv = twin(layer)
    x = torch.randn(2, 20, 3, dtype=torch.float64)
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, wanted = layer(ours)[0], padded(conv, theirs)
    torch.testing.assert_close(y, wanted)
    weights = torch.arange(y.numel()).view_as(y).sin()
    (y * weights).sum().backward()
    (wanted * weights).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
    assert layer.weight.grad is not None
    torch.testing.assert_close(layer.weight.grad.transpose(1, 2), conv.weight.grad)
    if layer.bias is not None and conv.bias is not None:
        torch.testing.assert_close(layer.bias.grad, conv.bias.grad)


def test_weight_norm_is_that_of_torch() -> None:
    torch.manual_seed(2)
    layer = NormedConv(3, 4, kernel=3, dilation=2).double()
    conv = weight_norm(twin(layer))  # over all that enters one output
    x = torch.randn(2, 9, 3, dtype=torch.float64)
    torch.testing.assert_close(layer(x)[0], padded(conv, x))
    with torch.no_grad():  # length and direction apart
        layer.length.mul_(1.7)
        layer.weight.mul_(0.3).add_(0.1)
        conv.parametrizations.weight.original0.mul_(1.7)
        conv.parametrizations.weight.original1.mul_(0.3).add_(0.1)
    y, wanted = layer(x)[0], padded(conv, x)
    torch.testing.assert_close(y, wanted)
    y.square().sum().backward()
    wanted.square().sum().backward()
    assert layer.length.grad is not None
    torch.testing.assert_close(layer.length.grad, conv.parametrizations.weight.original0.grad.flatten())


def test_by_hand() -> None:
    """W = (1, 10, 100) at dilation 2 on 1, 2, 3, ..: y_t = x_{t-4} + 10 x_{t-2} + 100 x_t + 0.5."""
    layer = CausalConv(1, 1, kernel=3, dilation=2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([1.0, 10.0, 100.0]).view(1, 3, 1))
        layer.bias.fill_(0.5)  # type: ignore[union-attr]
    y, past = layer(torch.arange(1.0, 7).view(1, 6, 1))
    assert y.flatten().tolist() == [100.5, 200.5, 310.5, 420.5, 531.5, 642.5]
    assert past.taps.tolist() == [[[3.0, 5.0], [4.0, 6.0]]]  # x_3, x_5 wait for x_7; x_4, x_6 for x_8
    with torch.no_grad():
        assert layer(torch.tensor([[[7.0]]]), past)[0].item() == 3 + 50 + 700 + 0.5


def test_the_lecture_notebooks_network() -> None:
    """Layers 32, 64, 128, 256 with kernel 3 on one-hot characters, V = 107: 167,275 parameters, receptive field 31."""
    config = RunConfig(
        model="tcn", model_settings={"form": "plain", "widths": (32, 64, 128, 256)}, ends=Ends(input="one-hot")
    )
    model = build(config, Ports(n_tokens=107, d_out=107), ("causal",))
    assert count_parameters(model) == 167_275
    assert model.receptive_field == 31


def test_the_lecture_notebooks_outputs() -> None:
    """Its layers written as there: padding, convolution, relu, and a 1x1 convolution as the classifier."""
    config = RunConfig(
        model="tcn", model_settings={"form": "plain", "widths": (8, 16, 32)}, ends=Ends(input="one-hot"), seed=3
    )
    model = build(config, Ports(n_tokens=11, d_out=11), ("causal",)).double()
    convs = [m for m in model.modules() if isinstance(m, CausalConv)]
    assert [c.dilation for c in convs] == [1, 2, 4]
    parts: list[nn.Module] = []
    for conv in convs:
        parts += [nn.ConstantPad1d((2 * conv.dilation, 0), 0.0), twin(conv), nn.ReLU()]
    (head,) = [m for m in model.modules() if isinstance(m, nn.Linear)]
    classifier = nn.Conv1d(32, 11, 1, dtype=torch.float64)
    with torch.no_grad():
        classifier.weight.copy_(head.weight[:, :, None])
        classifier.bias.copy_(head.bias)  # type: ignore[union-attr]
    tokens = torch.randint(11, (2, 25))
    wanted = nn.Sequential(*parts, classifier)(F.one_hot(tokens, 11).double().transpose(1, 2)).transpose(1, 2)
    torch.testing.assert_close(model(tokens)[0], wanted)
