"""Decoders that are asked at some positions alone, and levels that their outputs are relative to."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.core.batch import Batch
from unrolled.core.compose import pick
from unrolled.core.forward import forward
from unrolled.core.spec import Sizes
from unrolled.emissions.quantiles import Quantiles
from unrolled.layers.parts.assembled import Decoder
from unrolled.layers.parts.levels import Columns, FromInput, FromLast
from unrolled.models import gru, tcn

H, D = 3, 2
BODIES = {
    "gru": lambda: gru.make(gru.Config(d_state=6), Sizes(4, 1)),
    "tcn": lambda: tcn.make(tcn.MODEL.tiny, Sizes(4, 1)),
}


@pytest.mark.parametrize("kind", [Decoder, FromInput, FromLast])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("places", [[[8], [4]], [[8, 5, 0], [4, 4, 1]]])
def test_outputs_at_some_positions_are_those_of_all(kind: type[Decoder], body: str, places: list[list[int]]) -> None:
    torch.manual_seed(0)
    emission, layer = Quantiles(H * D), BODIES[body]()
    model = kind(nn.Linear(2 * D, 4), layer, nn.Linear(layer.d_out, emission.d_out)).eval()
    if isinstance(model, FromInput):
        model.anchored(Columns(D, H, True), emission.rescaled)
    x = torch.randn(2, 9, 2 * D)
    x[..., D:] = (torch.rand(2, 9, D) > 0.3).float()  # whether observed
    at = torch.tensor(places)
    wanted = pick(model(x)[0], at)
    y, _ = forward(model, Batch(x, at=at))
    torch.testing.assert_close(y, wanted)
    if at.shape[1] > 1:  # also behind a state
        _, state = model(x[:, :4])
        y, _ = model.at(x[:, 4:], torch.tensor([[0, 2]] * 2), state)
        torch.testing.assert_close(y, model(x)[0][:, [4, 6]])


def test_a_layer_that_knows_no_positions_is_asked_at_all() -> None:
    layer = gru.make(gru.Config(d_state=3), Sizes(2, 1))
    x, at = torch.randn(2, 5, 2), torch.tensor([[4, 1], [2, 0]])
    torch.testing.assert_close(forward(layer, Batch(x, at=at))[0], pick(layer(x)[0], at))
