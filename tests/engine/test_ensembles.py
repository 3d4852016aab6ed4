"""Models that predict together as one native program: the same mixtures as in torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
import torch

from tests.engine.decoders import V, decoder
from tests.engine.test_stepper import apart, native_step
from unrolled.core import state as tree
from unrolled.decode.choose import make_chooser
from unrolled.decode.config import Decoding
from unrolled.decode.rollout import best_of
from unrolled.emissions.categorical import Categorical
from unrolled.emissions.quantiles import Quantiles
from unrolled.engine.stepper import lowered, stepped
from unrolled.kernels import native
from unrolled.layers.parts.ensemble import ByEmission, CausalTogether
from unrolled.layers.parts.gate import Gate

LEVELS = [level for level in native.built() if level in native.allowed()[0]]
pytestmark = pytest.mark.skipif(not LEVELS, reason="no native library was built")


@pytest.fixture(autouse=True, params=LEVELS)
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    with native.using(request.param):
        yield request.param


def ensemble(
    names: Sequence[str], gated: bool = False, temperature: float = 1.0, sharpness: float = 3.0
) -> CausalTogether:
    mix = ByEmission(lambda: Categorical(V, temperature=temperature))
    members = [decoder(name, 5 + i, seed=i, sharpness=sharpness) for i, name in enumerate(names)]
    gate = Gate(len(names), mix)
    with torch.no_grad():
        for value in (gate.A, gate.b, gate.mean):
            value.normal_(std=0.5, generator=torch.Generator().manual_seed(1))
    weights = torch.arange(1.0, len(names) + 1)
    return CausalTogether(members, gate if gated else mix, (weights / weights.sum()).tolist()).eval()


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("gated", [False, True])
def test_a_tick_is_that_of_torch(rows: int, gated: bool) -> None:
    for names in (["gru"], ["lstm", "gpt"], ["gru", "gpt-window", "wavenet", "jordan"]):
        for temperature in (1.0, 0.7, 2.5):
            assert apart(ensemble(names, gated and len(names) > 1, temperature), rows, ticks=12) < 2e-5
    assert apart(ensemble(["lstm", "gpt"], gated).double(), rows, ticks=12) < 1e-10


@torch.no_grad()
def test_outputs_of_any_size() -> None:
    """Members that are sure of different choices, and choices that none of them thinks possible."""
    model = ensemble(["elman", "gru"], sharpness=300.0)
    for member in model.members:
        member.head.bias[3] = -1e30
    x = torch.randint(0, V, (2, 1))
    _, state = model(x)
    y, z = model(x, tree.clone(state))[0], native_step(model)(x, tree.clone(state))[0]
    assert y.min() < -1e29
    torch.testing.assert_close(z, y, rtol=1e-4, atol=1e-4)
    model.members[0].head.bias[:] = torch.nan
    assert native_step(model)(x, state)[0].isnan().all()


def test_texts_are_those_of_torch() -> None:
    model, prompt = ensemble(["lstm", "gpt", "gru"], gated=True), torch.randint(0, V, (3, 4))
    choose = make_chooser(Decoding(temperature=0.8), ())
    for seed in range(3):
        found = [best_of(2, step, None, prompt, None, choose, (), 60, seed=seed) for step in (model, stepped(model))]
        assert [[c.tokens for c in row] for row in found[0]] == [[c.tokens for c in row] for row in found[1]]


@torch.no_grad()
def test_a_change_of_the_weights_of_positions_is_seen() -> None:
    model, x = ensemble(["elman", "gru"], gated=True), torch.randint(0, V, (1, 1))
    _, state = model(x)
    before = stepped(model)(x, tree.clone(state))[0]
    model.mix.b += torch.tensor([3.0, -3.0])
    after = stepped(model)(x, tree.clone(state))[0]
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, model(x, state)[0], rtol=1e-5, atol=1e-5)


def test_what_mixes_otherwise_is_left_to_torch() -> None:
    why = "an ensemble whose outputs are not probabilities of choices"
    members = [decoder("gru", 5), decoder("elman", 5)]
    assert lowered(CausalTogether(members)) == why
    assert lowered(CausalTogether(members, ByEmission(lambda: Quantiles(1)))) == why

    class Other(Gate):
        def forward(self, ys: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
            return ys[0]

    other = Other(2, ByEmission(lambda: Categorical(V)))
    assert lowered(CausalTogether(members, other)) == "a Other in the place of a Gate"
