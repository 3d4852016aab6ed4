"""n-gram models as native programs: the same distributions as the tree of contexts in torch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from unrolled.core.batch import TARGET
from unrolled.core.spec import Sizes
from unrolled.data.examples import Examples, Ragged
from unrolled.decode.choose import make_chooser
from unrolled.decode.config import Decoding
from unrolled.decode.rollout import best_of
from unrolled.engine.stepper import Stepper, lowered, stepped
from unrolled.kernels import native
from unrolled.layers.counting.ngram import NGram
from unrolled.models import ngram

LEVELS = [level for level in native.built() if level in native.allowed()[0]]
pytestmark = pytest.mark.skipif(not LEVELS, reason="no native library was built")
V = 19


@pytest.fixture(autouse=True, params=LEVELS)
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    with native.using(request.param):
        yield request.param


def fitted(order: int, **settings: object) -> ngram.Solved:
    """Of a text in which each token hangs on the two before it."""
    random = np.random.default_rng(order)
    text = [4, 5]
    for _ in range(600):
        text.append(4 + (3 * text[-1] + text[-2]) % 13 if random.random() < 0.7 else int(random.integers(4, V - 2)))
    model = ngram.make(ngram.Config.parse({"order": order, **settings}), Sizes(V, V))
    model.solve(Examples({TARGET: Ragged(np.array(text), (np.array([0, len(text)]),))}, {}, True))
    return model.eval()


def tokens(rows: int, n: int) -> Tensor:
    return torch.randint(4, V, (rows, n), generator=torch.Generator().manual_seed(n))


@pytest.mark.parametrize("order", [1, 2, 3, 6])
@pytest.mark.parametrize("rows", [1, 5])
def test_ticks_are_the_chunk(order: int, rows: int) -> None:
    model, x = fitted(order), tokens(rows, 40)
    for wide in (False, True):
        model = model.double() if wide else model
        step = lowered(model)
        assert isinstance(step, Stepper)
        whole, last = model(x)
        _, state = model(x[:, :2])
        for t in range(2, 40):
            y, state = step(x[:, t : t + 1], state)
            torch.testing.assert_close(y[:, 0], whole[:, t], rtol=1e-5, atol=1e-6)
        assert torch.equal(state, last)


def test_texts_are_those_of_torch() -> None:
    model, prompt = fitted(4, smoothing="witten-bell"), tokens(3, 5)
    choose = make_chooser(Decoding(), (0,))
    for seed in range(3):
        found = [best_of(2, step, None, prompt, None, choose, (), 50, seed=seed) for step in (model, stepped(model))]
        assert [[c.tokens for c in row] for row in found[0]] == [[c.tokens for c in row] for row in found[1]]


def test_a_model_that_counts_again_is_lowered_again() -> None:
    model, x = fitted(3), tokens(1, 2)
    _, state = model(x)
    before, _ = stepped(model)(x[:, :1], state.clone())
    model.load_state_dict(fitted(4).state_dict())
    after, _ = stepped(model)(x[:, :1], state.clone())
    assert not torch.equal(before, after)
    torch.testing.assert_close(after, model(x[:, :1], state)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("token", [-1, V])
def test_tokens_outside_are_refused_as_by_torch(token: int) -> None:
    model = fitted(3)
    _, state = model(tokens(1, 2))
    with pytest.raises(IndexError, match="outside the vocabulary"):
        stepped(model)(torch.tensor([[token]]), state)


def test_followers_outside_are_refused() -> None:
    model = fitted(2)
    model.tokens[:] = V
    with pytest.raises((IndexError, RuntimeError)):
        stepped(model)(torch.tensor([[5]]), torch.full((1, 1), 5))


def test_a_class_that_changes_the_equation_is_not_lowered() -> None:
    class Sharper(NGram):
        def _log_p(self, nodes: Tensor) -> Tensor:
            return 2 * super()._log_p(nodes)

    class Named(NGram):
        def named(self) -> str:
            return "more than an n-gram layer, but the same equation"

    assert lowered(Sharper(2, V, V)) == "Sharper has no native form"
    assert isinstance(lowered(Named(2, V, V)), Stepper)


def test_logarithms() -> None:
    """Of shares of any size: an n-gram of order 1 gives the logarithms of its shares."""
    shares = torch.cat([torch.logspace(-37, 0, 700), torch.linspace(0.4, 1, 300), torch.tensor([2e-45, 3e-39, 0.0])])
    n = len(shares)
    model = NGram(1, n, n)
    model.keys, model.offsets = torch.tensor([-1]), torch.tensor([0, n])
    model.tokens, model.shares, model.backoff = torch.arange(n, dtype=torch.int32), shares, torch.zeros(1)
    y, _ = stepped(model)(torch.tensor([[0]]), torch.empty(1, 0, dtype=torch.long))
    true = shares.double().log().clamp(min=-1e4)
    torch.testing.assert_close(y[0, 0].double(), true, rtol=3e-7, atol=2e-7)
