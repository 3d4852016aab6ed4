"""Native ticks where something is odd: sizes, settings, nothing to do, more rows than fit, numbers that are none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from tests.engine.decoders import BODIES, decoder
from tests.engine.test_stepper import LEVELS, V, apart, native_step, tokens
from tests.thorough import every
from unrolled.core import state as tree
from unrolled.decode.choose import make_chooser
from unrolled.decode.config import Decoding
from unrolled.decode.noise import Noise
from unrolled.decode.rollout import drawn
from unrolled.engine.operations import Form
from unrolled.engine.rounding import round_weights
from unrolled.kernels import native
from unrolled.layers.parts.assembled import Decoder

pytestmark = pytest.mark.skipif(not LEVELS, reason="no native library was built")


@pytest.fixture(autouse=True, params=LEVELS)
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    with native.using(request.param):
        yield request.param


@pytest.mark.parametrize("form", [None, Form.BF16, Form.INT8])
@pytest.mark.parametrize("name", every(3, ["lstm", "gru", "book-gru", "projected", "gpt", "llama", "tcn", "wavenet-3"]))
def test_odd_sizes(name: str, form: Form | None) -> None:
    """Of every remainder of registers and tiles, in units and in rows."""
    for i, width in enumerate((2, 3, 7, 17, 31, 47, 63, 65)):
        torch.manual_seed(i)
        model = decoder(name, width)
        if form is not None:
            round_weights(model, form)
        assert apart(model, (2, 4, 5, 7, 8, 9, 17, 128)[i], ticks=6) < 1e-5


EXTREME = {
    "top-k of one": Decoding(top_k=1), "tiny nucleus": Decoding(top_p=1e-9), "cold": Decoding(temperature=1e-6),
    "hot": Decoding(temperature=1e6), "all of them": Decoding(top_k=V + 5),
    "hard penalty": Decoding(repetition_penalty=50.0),
    "greedy and penalty": Decoding(temperature=0.0, repetition_penalty=2.0),
    "everything": Decoding(temperature=0.3, top_k=1, top_p=1e-6, repetition_penalty=9.0, seed=2**63 - 1),
}  # fmt: skip


@pytest.mark.parametrize("name", EXTREME)
def test_extreme_settings(name: str) -> None:
    model = decoder("gru", 9, sharpness=3.0)
    for stop in ((), (3,), tuple(range(V))):
        for rows in (1, 6):
            found = tokens(native_step(model), EXTREME[name], 40, rows=rows, stop=stop)
            assert found == tokens(model, EXTREME[name], 40, rows=rows, stop=stop)


def test_one_token_after_one_token() -> None:
    model = decoder("tcn", 7)
    for stop in ((), tuple(range(V))):
        assert len(tokens(native_step(model), Decoding(), 1, stop=stop)[0][0]) == 1


@torch.no_grad()
def test_nothing_to_do() -> None:
    model = decoder("lstm", 6)
    step = native_step(model)
    for rows, ticks in ((0, 1), (3, 0), (0, 0)):
        x = torch.ones(rows, ticks, dtype=torch.long)
        assert step(x, None)[0].shape == (rows, ticks, V)
        _, state = model(torch.ones(rows, 2, dtype=torch.long), None)
        y, after = step(x, tree.clone(state))
        assert y.shape == (rows, ticks, V)
        assert all(map(torch.equal, tree.leaves(state), tree.leaves(after)))


@torch.no_grad()
def test_more_rows_than_native_code_takes() -> None:
    model = decoder("gru", 5)
    for rows in (128, 129):
        assert apart(model, rows, ticks=3) < 1e-5
        prompt, noise = torch.ones(rows, 2, dtype=torch.long), Noise(0, torch.arange(rows))
        y, state = model(prompt, None)
        found = native_step(model).draw(
            y[:, -1], state, prompt, torch.full((rows,), 2), make_chooser(Decoding()), [], 3, noise
        )
        assert (found is None) == (rows > 128)
        chosen = [
            torch.cat([b.tokens for b in drawn(step, None, prompt, None, make_chooser(Decoding()), (), 3)], 1)
            for step in (model, native_step(model))
        ]
        assert torch.equal(*chosen)


def test_tokens_that_may_never_be_chosen_must_exist() -> None:
    """Native code writes where they stand."""
    model = decoder("lstm", 5)
    for never in (V, -1, 10**9):
        with pytest.raises((RuntimeError, IndexError)):
            choose = make_chooser(Decoding(), (never,))
            list(drawn(native_step(model), None, torch.ones(1, 1).long(), None, choose, (), 3))


@torch.no_grad()
@pytest.mark.parametrize("name", ["lstm", "gru", "elman-relu", "gpt", "tcn", "wavenet", "llama"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_none(name: str, bad: float) -> None:
    """What is not a number stays so in its own row and reaches no other; infinity saturates as it does in torch."""
    model = Decoder(nn.Linear(3, 8), BODIES[name](8, 8), None).eval()
    step, x = native_step(model), torch.randn(4, 3, 3, generator=torch.Generator().manual_seed(0))
    x[2, 1, 1] = bad
    _, state = model(x[:, :1], None)
    own: object = tree.clone(state)
    for t in (1, 2):
        y, state = model(x[:, t : t + 1], state)
        z, own = step(x[:, t : t + 1].contiguous(), own)
        others: Tensor = torch.tensor([0, 1, 3])
        assert torch.allclose(y[others], z[others], atol=1e-5)
        assert torch.equal(y.isfinite(), z.isfinite())
