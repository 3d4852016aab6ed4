"""Models that predict together obey the laws of their kind, and their outputs are mixed as an emission mixes them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unrolled.core.causal import Conditional
from unrolled.core.compose import as_encoder, pick
from unrolled.emissions.categorical import Categorical
from unrolled.layers.conv.conv import CausalConv
from unrolled.layers.parts.assembled import Reader
from unrolled.layers.parts.ensemble import ByEmission, CausalTogether, ConditionalTogether, Together, kind_of, together
from unrolled.layers.parts.gate import Gate
from unrolled.layers.readouts.mean import Mean
from unrolled.nn import GRU
from unrolled.testing import check_causal, check_encoder


def member(seed: int) -> Reader:
    torch.manual_seed(seed)
    return Reader(nn.Linear(4, 5), as_encoder(nn.Tanh()), Mean(5), nn.Linear(5, 3))


def test_it_is_an_encoder():
    assert "padding" in check_encoder(Together([member(0), member(1)], Categorical(3).mix), d_in=4)


def test_outputs_are_mixed_with_equal_weights():
    members = [member(seed) for seed in range(3)]
    x, mask = torch.randn(6, 7, 4), torch.arange(7) < torch.tensor([7, 5, 1, 3, 7, 2])[:, None]
    ys = torch.stack([each(x, mask)[0] for each in members])  # [K, B, 1, C]
    y, shown = Together(members)(x, mask)
    torch.testing.assert_close(y, ys.mean(0))
    y, _ = Together(members, Categorical(3).mix)(x, mask)
    torch.testing.assert_close(y.softmax(-1), ys.softmax(-1).mean(0))
    assert shown.shape == (6, 1)
    assert Together(members).serial_steps(64) == pytest.approx(Together(members[:1]).serial_steps(64))


def test_causal_models_are_one_causal_model():
    torch.manual_seed(0)
    members = [GRU(4, 3), CausalConv(4, 3, kernel=2)]
    both = CausalTogether(members, Categorical(3).mix, (0.25, 0.75))
    assert "chunks" in check_causal(both, d_in=4)
    x = torch.randn(2, 5, 4)
    p = [member(x)[0].softmax(-1) for member in members]
    torch.testing.assert_close(both(x)[0].softmax(-1), 0.25 * p[0] + 0.75 * p[1])
    places = torch.tensor([[4, 0], [2, 2]])
    torch.testing.assert_close(both.at(x, places)[0], pick(both(x)[0], places))
    assert both.receptive_field is None and CausalTogether(members[1:]).receptive_field == 2


def test_weights_of_each_position_obey_the_laws():
    torch.manual_seed(0)
    emission = Categorical(3)
    gate = Gate(2, ByEmission(lambda: emission))
    with torch.no_grad():
        gate.A.normal_(std=0.3)
        gate.mean.normal_()
    members = [GRU(4, 3), CausalConv(4, 3, kernel=2)]
    both = CausalTogether(members, gate, (0.25, 0.75))
    assert "chunks" in check_causal(both, d_in=4)
    assert "padding" in check_encoder(Together([member(0), member(1)], gate), d_in=4)
    x = torch.randn(2, 5, 4)
    p = torch.stack([member(x)[0].softmax(-1) for member in members])  # [K, B, T, V]
    z = torch.cat([p.log().max(-1).values, -(p * p.log()).sum(-1)]).view(2, 2, 2, 5)  # [feature, K, B, T]
    z = (z.permute(2, 3, 1, 0).flatten(-2) - gate.mean).clamp(-4, 4)  # [B, T, 2 K]
    w = (torch.cat([z, z**2], -1) @ gate.A.T + torch.tensor([0.25, 0.75]).log()).softmax(-1)  # [B, T, K]
    torch.testing.assert_close(both(x)[0].softmax(-1), torch.einsum("btk,kbtv->btv", w, p))
    gate.A.data.zero_()
    torch.testing.assert_close(both(x)[0], CausalTogether(members, emission.mix, (0.25, 0.75))(x)[0])


def test_conditional_models_write_together():
    class Starts(Conditional):
        def __init__(self, seed: int) -> None:
            super().__init__()
            torch.manual_seed(seed)
            self.decoder, self.start = GRU(4, 3), nn.Linear(2, 3)

        def condition(self, source, mask):
            return (self.start(source[:, 0]),)

    members = [Starts(0), Starts(1)]
    both = together(members, weights=(0.5, 0.5))
    assert isinstance(both, ConditionalTogether) and kind_of(both) is Conditional
    x, source = torch.randn(2, 5, 4), torch.randn(2, 1, 2)
    y, _ = both.decoder(x, both.condition(source, None))
    each = [member.decoder(x, member.condition(source, None))[0] for member in members]
    torch.testing.assert_close(y, (each[0] + each[1]) / 2)
    assert sum(p.numel() for p in both.parameters()) == 2 * sum(p.numel() for p in members[0].parameters())
