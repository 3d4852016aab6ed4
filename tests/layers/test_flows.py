"""Flows: the inverse gives the noise back, the parameters are those of the last sample, and the density is one."""

from __future__ import annotations

import pytest
import torch

from unrolled.core.causal import begin
from unrolled.core.compose import Serial
from unrolled.layers.parts.assembled import Decoder
from unrolled.layers.parts.conditioning import Held
from unrolled.layers.parts.flows import FlowHead, Flows, ToldFlows
from unrolled.layers.recurrent.cells import GRU
from unrolled.layers.recurrent.recurrent import Recurrent

B, T, L = 2, 9, 3


def flows(n: int = 3, beside: int = 0) -> Flows:
    torch.manual_seed(0)
    made = []
    for _ in range(n):
        body = Recurrent(GRU(4 + beside, 5))
        head = FlowHead(5, -0.5)
        torch.nn.init.normal_(head.weight)
        whole = Serial(Held(beside, 2), body) if beside else body
        made.append(Decoder(torch.nn.Linear(1, 4), whole, head))
    return Flows(made).double().eval()


def logistic(*shape: int) -> torch.Tensor:
    return torch.logit(torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1)))


def test_the_inverse_gives_the_noise_back() -> None:
    layer, z = flows(), logistic(B, T, 1)
    with torch.no_grad():
        x, _, log_s = layer(z)[0].unbind(-1)
    found, log_p = layer.inverse(x.unsqueeze(-1))
    assert torch.allclose(found, z, atol=1e-8)
    base = torch.nn.functional.logsigmoid(z) + torch.nn.functional.logsigmoid(-z)
    assert torch.allclose(log_p, base.squeeze(-1) - log_s, atol=1e-8)


def test_a_sample_is_logistic_given_the_noise_before_it() -> None:
    layer, z = flows(), logistic(B, T, 1)
    x, mu, log_s = layer(z)[0].unbind(-1)
    assert torch.allclose(x, mu + log_s.exp() * z.squeeze(-1))
    other = z.clone()
    other[:, 5] += 1.7
    moved = layer(other)[0]
    assert torch.equal(moved[:, :6, 1:], layer(z)[0][:, :6, 1:])  # mu and s know the noise before alone
    assert torch.allclose(moved[:, 5, 0] - x[:, 5], 1.7 * log_s[:, 5].exp())
    assert bool((moved[:, 6:, 1] != mu[:, 6:]).any())


def test_the_density_is_that_of_a_change_of_variables() -> None:
    layer, z = flows(2), logistic(1, 4, 1)
    jacobian = torch.autograd.functional.jacobian(lambda v: layer(v.view(1, 4, 1))[0][0, :, 0], z.flatten())
    log_s = layer(z)[0][0, :, 2]
    assert torch.allclose(torch.linalg.slogdet(jacobian)[1], log_s.sum(), atol=1e-8)


@pytest.mark.parametrize("frames", [1, 5])
def test_chunks_and_a_condition(frames: int) -> None:
    model, z = ToldFlows(flows(2, L), 2, L).double().eval(), logistic(B, T, 1)
    c = torch.randn(B, frames, 2, dtype=torch.float64)
    layer, state = begin(model, c)
    whole, _ = layer(z, state)
    pieces, state = [], model.condition(c)
    for cut in z.split([1, 3, 5], dim=1):
        y, state = layer(cut, state)
        pieces.append(y)
    assert torch.allclose(torch.cat(pieces, 1), whole, atol=1e-10)
    assert not torch.allclose(whole, layer(z, model.condition(c + 1))[0])
    found, _ = layer.inverse(whole[..., :1], model.condition(c))
    assert torch.allclose(found, z, atol=1e-8)
