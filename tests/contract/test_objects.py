"""`check_object` makes a layer of whatever it is given, or says in one sentence why it cannot."""

from __future__ import annotations

import types

import pytest
import torch
from torch import nn

from unrolled.core.causal import Causal, Conditional, Encoder
from unrolled.core.compose import Each
from unrolled.core.config import Config
from unrolled.core.errors import UsageError
from unrolled.testing import LawBroken, check_causal, check_cell, check_object, checks_for


class Plain(Causal):
    def __init__(self, d_in: int = 3) -> None:
        super().__init__()
        self.u = nn.Linear(d_in, 2)
        self.d_in = d_in

    def forward(self, x, state=None):
        return self.u(x), ()


class Wide(Causal):
    """It needs its width and does not tell it afterwards."""

    def __init__(self, d_in: int) -> None:
        super().__init__()
        self.u = nn.Linear(d_in, 2)

    def forward(self, x, state=None):
        return self.u(x), ()


class Words(Causal):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.u = nn.Embedding(vocabulary, 2)

    def forward(self, x, state=None):
        return self.u(x), ()


class Settings(Config):
    width: int = 3


class Configured(Wide):
    TINY = Settings(width=2)

    def __init__(self, config: Settings) -> None:
        super().__init__(config.width)
        self.d_in = config.width


class Greedy(Causal):
    def __init__(self, d_in: int, depth: int, *, heads: int) -> None:
        super().__init__()


class ForgetsBuffer(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("noise", torch.randn(3), persistent=False)

    def forward(self, x, state=None):
        return super().forward(x + self.noise, state)


class Marks(Encoder):
    d_in = 3

    def forward(self, x, mask):
        return torch.where(mask[..., None], x, 0.0), mask


class Tick(nn.Module):
    input_size = state_size = 2

    def forward(self, x_t, h):
        return 0.5 * h + x_t

    def output(self, h):
        return h


class SizedTick(Tick):
    def __init__(self, d_in, d_state: int) -> None:
        super().__init__()
        self.input_size, self.state_size = d_in, d_state
        self.w = nn.Linear(d_in, d_state)

    def forward(self, x_t, h):
        return torch.tanh(self.w(x_t) + h)


class Pair(Conditional):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = Marks()
        self.decoder = Plain()

    def condition(self, source, mask):
        return ()


@pytest.mark.parametrize("obj", [Plain, Plain(), Plain(5), Wide, Configured, lambda: Plain(2)])
def test_causal_layers_in_every_form(obj):
    assert "chunks" in check_object(obj)


def test_widths_that_are_given():
    assert "chunks" in check_object(Wide, d_in=6)
    assert "chunks" in check_object(Words, vocabulary=6)
    assert "chunks" in check_object(Wide(6), d_in=6)
    assert "chunks" in check_object(Each(nn.Identity()), d_in=2)


def test_other_kinds():
    assert "padding" in check_object(Marks)
    assert check_object(Tick)[-1] == "gradient"
    assert check_object(SizedTick, d_in=3)[-1] == "gradient"
    assert checks_for(Tick()) == [check_cell]
    assert checks_for(Plain()) == [check_causal]


def test_a_class_is_made_twice_so_that_forgotten_weights_show():
    with pytest.raises(LawBroken) as caught:
        check_object(ForgetsBuffer)
    assert caught.value.law == "saving"


def test_conditional_is_checked_with_widths_of_its_halves():
    with pytest.raises(LawBroken) as caught:
        check_object(Pair)
    assert caught.value.law == "condition"


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (Greedy, "without d_in, depth, heads"),
        (nn.Linear(2, 2), "none of Causal"),
        (lambda: 3, "not a torch.nn.Module"),
        (3, "not a layer"),
        (types.ModuleType("empty"), "not a model file"),
        ("no-such-model", "there is no model"),
    ],
)
def test_what_cannot_be_checked(obj, words):
    with pytest.raises(UsageError, match=words):
        check_object(obj)
