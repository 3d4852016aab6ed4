"""Decoders that a source starts: a tick after the first is native, and texts are those of torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch
from torch import nn

from unrolled.core import state as tree
from unrolled.core.causal import Causal
from unrolled.core.compose import Serial
from unrolled.core.errors import DataError
from unrolled.decode.beam import beam_search
from unrolled.decode.choose import make_chooser
from unrolled.decode.config import Decoding
from unrolled.decode.rollout import best_of
from unrolled.engine.program import fits
from unrolled.engine.stepper import Stepper, lowered
from unrolled.kernels import native
from unrolled.layers.attention.scores import SCORES
from unrolled.layers.conv.wave import WaveNet
from unrolled.layers.parts.assembled import Decoder
from unrolled.layers.parts.conditioning import Appended, Held
from unrolled.layers.parts.decoders import attention_decoder, fixed_context_decoder
from unrolled.layers.parts.embedding import Table
from unrolled.layers.recurrent.cells import GRU, LSTM, BookGRU, Cell, Elman, LinearUnit
from unrolled.layers.recurrent.family import RecurrentConfig
from unrolled.layers.recurrent.recurrent import Recurrent
from unrolled.models import transformer as gpt

pytestmark = pytest.mark.skipif(not native.built(), reason="no native library was built")
V, D, SOURCE = 13, 6, 5
SMALL = RecurrentConfig(d_state=7, n_layers=2)
POST = {"norm": "post", "position": "sinusoid", "n_key_heads": 1}
BLOCKS = gpt.Config(d_model=8, n_layers=2, n_heads=2, d_ff=12, window=0)


def attention(cell: Callable[[int, int], Cell], score: str) -> Causal:
    return attention_decoder(SMALL, D, SOURCE, cell, score)


def local(beside: Appended, width: int) -> Serial:
    body = Serial(beside, WaveNet(D + width, 6, 7, [1, 2, 4], d_local=width))
    body.d_out = 7
    return body


BODIES: dict[str, Callable] = {
    "start": lambda: fixed_context_decoder(SMALL, D, SOURCE, LSTM, "start"),
    "every-step": lambda: fixed_context_decoder(SMALL, D, SOURCE, GRU, "every-step"),
    "blocks": lambda: gpt.attending(BLOCKS, D, SOURCE),
    "blocks-post": lambda: gpt.attending(BLOCKS.updated(POST), D, SOURCE),
    "local": lambda: local(Appended(4), 4), "held": lambda: local(Held(3, hop=5), 3),
    **{f"attention-{cell.__name__}-{score}": partial(attention, cell, score)
       for cell, score in zip([GRU, LSTM, BookGRU, Elman, LinearUnit], SCORES, strict=True)},
    "attention-state": lambda: attention_decoder(SMALL, D, SOURCE, LSTM, "dot", "state"),
    "attention-alone": lambda: attention_decoder(SMALL.updated({"n_layers": 1}), D, SOURCE, GRU),
}  # fmt: skip


@pytest.fixture(autouse=True)
def highest() -> Iterator[None]:
    with native.using([level for level in native.built() if level in native.allowed()[0]][-1]):
        yield


def started(name: str, rows: int) -> tuple[Decoder, object]:
    torch.manual_seed(3)
    body = BODIES[name]()
    model = Decoder(Table(V, D), body, nn.Linear(body.d_out, V)).eval()
    mask = torch.arange(4) < torch.tensor([4, 2, 3, 1, 4])[:rows, None]
    with torch.no_grad():
        if type(body) is Serial:
            held = body.layers[0]
            return model, (held.start(torch.randn(rows, 4, held.d_source), mask), None)
        return model, body.start(torch.randn(rows, 4, SOURCE), mask)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("rows", [1, 5])
def test_ticks_after_a_source(name: str, rows: int) -> None:
    model, state = started(name, rows)
    step = lowered(model)
    assert isinstance(step, Stepper), step
    x = torch.ones(rows, 1, dtype=torch.long)
    with torch.no_grad():
        _, mine = model(x, tree.clone(state))
        _, own = model(x, tree.clone(state))
        for t in range(12):
            assert fits(step.program, mine, rows)
            x = torch.full((rows, 1), t % V)
            (y, own), (z, mine) = model(x, own), step(x, mine)
            assert torch.allclose(y, z, atol=1e-5)


@pytest.mark.parametrize("name", BODIES)
def test_texts_of_a_source(name: str) -> None:
    model, state = started(name, 3)
    step, prompt = lowered(model), torch.ones(3, 1, dtype=torch.long)
    for choose in (make_chooser(Decoding(), (0,)), make_chooser(Decoding(temperature=0.0), (0,))):
        found = [best_of(2, each, tree.clone(state), prompt, None, choose, (2,), 20) for each in (model, step)]
        assert [[c.tokens for c in g] for g in found[0]] == [[c.tokens for c in g] for g in found[1]]
    beams = [beam_search(each, tree.clone(state), prompt, (2,), 4, 20) for each in (model, step)]
    assert [[c.tokens for c in g] for g in beams[0]] == [[c.tokens for c in g] for g in beams[1]]


def test_a_state_of_another_source_is_refused() -> None:
    """Leaves of one source that disagree about its length would lead native code astray."""
    model, state = started("attention-alone", 2)
    x = torch.ones(2, 1, dtype=torch.long)
    with torch.no_grad():
        _, (fixed, own) = model(x, tree.clone(state))
        broken = tree.Fixed(fixed.tree._replace(values=fixed.tree.values[:, :2]))
        with pytest.raises((RuntimeError, DataError)):
            lowered(model)(x, (broken, own))


def test_other_scores_and_parts_are_left_to_torch() -> None:
    model, _ = started("attention-alone", 1)
    model.body.aligned.score.register_forward_hook(print)
    assert "Additive" in str(lowered(model))
    model, _ = started("attention-alone", 1)
    model.body.aligned.cell.register_forward_hook(print)
    assert "GRU" in str(lowered(model))


@pytest.mark.parametrize("width", [0, 2])
def test_numbers_with_a_sequence_beside_them(width: int) -> None:
    """As forecasts run on their own draws."""
    torch.manual_seed(1)
    along = Appended(width)
    along.d_in = 3
    layer = Serial(along, Recurrent(GRU(3 + width, 8)), nn.Linear(8, 3)).eval()
    step, x = lowered(layer), torch.randn(4, 20, 3)
    assert isinstance(step, Stepper), step
    with torch.no_grad():
        state = (along.start(torch.randn(4, 12, width)), None, None)
        whole, _ = layer(x, tree.clone(state))
        y, state = layer(x[:, :1], state)
        for t in range(1, 20):
            assert fits(step.program, state, 4)
            y, state = step(x[:, t : t + 1], state)
            torch.testing.assert_close(y[:, 0], whole[:, t])
