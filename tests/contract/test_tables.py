"""The laws of one vector per example: sound modules pass, broken ones are caught by the law that they break."""

from __future__ import annotations

import textwrap

import pytest
import torch
from torch import nn

from unrolled.core import discover
from unrolled.core.compose import Each
from unrolled.core.errors import UsageError
from unrolled.testing import LawBroken, check_model, check_table

D = 4


class Broken(nn.Module):
    d_in = D

    def __init__(self) -> None:
        super().__init__()
        self.u = nn.Linear(D, 3)


class Mixes(Broken):
    def forward(self, x):
        y = self.u(x)
        return y - y.mean(0)


class LeaksALittle(Broken):
    """A dependence on other rows too small to be seen in y; the gradient shows it."""

    def forward(self, x):
        return self.u(x) + 1e-11 * x.roll(1, 0).sum()


class Counts(Broken):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return self.u(x) * self.calls


class Writes(Broken):
    def forward(self, x):
        return self.u(x.mul_(0.5))


class Forgets(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.randn(3)

    def forward(self, x):
        return self.u(x) * self.scale.to(x)


class Single(Broken):
    def forward(self, x):
        return self.u(x).float()


class Flat(Broken):
    def forward(self, x):
        return self.u(x).sum(-1)


class Pair(Broken):
    def forward(self, x):
        return self.u(x), None


class Divides(Broken):
    def forward(self, x):
        return self.u(x) / torch.zeros(1)


class NeedsSomebody(Broken):
    def forward(self, x):
        return self.u(x) + 0 * x.amax()


BROKEN = {
    Mixes: "rows", LeaksALittle: "rows", Counts: "state", Writes: "state", Forgets: "saving", Single: "dtype",
    Flat: "form", Pair: "form", Divides: "form", NeedsSomebody: "form",
}  # fmt: skip


@pytest.mark.parametrize(("model", "law"), BROKEN.items(), ids=lambda value: getattr(value, "__name__", value))
def test_broken_tables_are_caught_by_their_law(model, law) -> None:
    with pytest.raises(LawBroken) as caught:
        check_table(model())
    assert caught.value.law == law, str(caught.value)


def test_sound_tables_pass() -> None:
    model = nn.Sequential(nn.Linear(D, 5), nn.LayerNorm(5), nn.Dropout(0.5), nn.ReLU())
    assert check_table(model) == ["form", "saving", "dtype", "state", "rows"]
    with pytest.raises(UsageError, match="one vector per example"):
        check_table(Each(nn.Linear(D, 2)))


GOOD = '''
"""A table model of the user's own."""
from torch import nn
from unrolled.core.config import Config as Base

KIND = "table"

class Config(Base):
    width: int = 8

TINY = Config(width=3)

def make(config, d_in, d_out):
    body = nn.Sequential(nn.Linear(d_in, config.width), nn.Tanh())
    body.d_out = config.width
    return body
'''

FAULTS = {
    "d_out is missing": ("body.d_out = config.width", "pass"),
    "d_out is wrong": ("body.d_out = config.width", "body.d_out = 99"),
    "it runs along sequences": ("return body", "from unrolled.core.compose import Each\n    return Each(body)"),
}


def load(tmp_path, text):
    file = tmp_path / "own_table.py"
    file.write_text(textwrap.dedent(text))
    room = discover.Room("unrolled.models", discover.models.needs)
    return room.load(room.add_file(file))


def test_a_users_table_passes(tmp_path) -> None:
    assert check_model(load(tmp_path, GOOD)) == ["config", "form", "saving", "dtype", "state", "rows"]


@pytest.mark.parametrize(("right", "wrong"), FAULTS.values(), ids=FAULTS)
def test_faulty_tables_are_caught(tmp_path, right, wrong) -> None:
    assert right in GOOD
    with pytest.raises(LawBroken) as caught:
        check_model(load(tmp_path, GOOD.replace(right, wrong)))
    assert caught.value.law == "form"


def test_an_encoder_may_answer_once_for_all(tmp_path) -> None:
    text = '''
    """One vector for a whole sequence."""
    from torch import nn
    from unrolled.core.compose import Read
    from unrolled.core.config import Config as Base
    from unrolled.layers.pooling import Mean

    KIND = "encoder"

    class Config(Base):
        width: int = 8

    TINY = Config(width=3)

    def make(config, d_in, d_out):
        body = Read(nn.Linear(d_in, 4), Mean(4), nn.Linear(4, config.width))
        body.d_out = config.width
        return body
    '''
    assert "padding" in check_model(load(tmp_path, text))
