"""Every model that is discovered goes through the laws of its kind."""

from __future__ import annotations

import textwrap
import types
from typing import Literal, get_args, get_origin

import pytest

from unrolled.core import discover
from unrolled.core.errors import UsageError
from unrolled.testing import LawBroken, check_model


@pytest.mark.parametrize("name", discover.models.names())
def test_model_obeys_the_laws(name):
    passed = check_model(name)
    assert "config" in passed
    assert "rows" in passed


def variants(config):
    """Configs in which every choice of every setting occurs: the i-th takes the i-th choice everywhere.

    The scan stays as it is: that scans agree for every cell is a law of their own.
    """
    choices = {
        name: [None, 1] if type(None) in get_args(field.annotation) else [*get_args(field.annotation)]
        for name, field in type(config).model_fields.items()
        if name != "scan" and (get_origin(field.annotation) is Literal or type(None) in get_args(field.annotation))
    }
    for i in range(1, max(map(len, choices.values()), default=1)):
        yield config.updated({name: options[i % len(options)] for name, options in choices.items()})


def with_tiny(module, config):
    varied = types.ModuleType(module.__name__)
    vars(varied).update(vars(module), TINY=config)
    return varied


@pytest.mark.parametrize("name", discover.models.names())
def test_every_choice_obeys_the_laws(name):
    module = discover.models.load(name)
    for config in variants(module.TINY):
        try:
            check_model(with_tiny(module, config))
        except LawBroken as broken:
            raise AssertionError(f"{config!r}: {broken}") from broken


@pytest.mark.parametrize("scan", ["loop", "deer"])
def test_a_model_obeys_the_laws_with_every_scan(scan):
    module = discover.models.load("elman")
    assert "chunks" in check_model(with_tiny(module, module.TINY.updated({"scan": scan})))


GOOD = '''
"""A model of the user's own."""
from torch import nn
from unrolled.core.compose import Serial
from unrolled.core.config import Config as Base

KIND = "causal"

class Config(Base):
    width: int = 8

TINY = Config(width=3)

def make(config, d_in, d_out):
    body = Serial(nn.Linear(d_in, config.width), nn.Tanh())
    body.d_out = config.width
    return body
'''

FAULTS = {
    "d_out is missing": ("body.d_out = config.width", "pass", "form"),
    "d_out is wrong": ("body.d_out = config.width", "body.d_out = 99", "form"),
    "head of another width": ('KIND = "causal"', 'KIND = "causal"\nOWNS_HEAD = True', "form"),
    "another kind than it says": ('KIND = "causal"', 'KIND = "encoder"', "form"),
    "a setting without default": ("width: int = 8", "width: int", "config"),
    "null that a recipe cannot say": (
        "width: int = 8\n\nTINY = Config(width=3)",
        "width: int = 3\n    depth: int | None = 1\n\nTINY = Config(depth=None)",
        "config",
    ),
    "weights that are not in the state dict": (
        "Serial(nn.Linear(d_in, config.width), nn.Tanh())",
        "Serial(nn.Linear(d_in, config.width), nn.BatchNorm1d(config.width))",
        "form",
    ),
}


def load(tmp_path, text):
    file = tmp_path / "own_model.py"
    file.write_text(textwrap.dedent(text))
    room = discover.Room("unrolled.models", discover.models.needs)
    return room.load(room.add_file(file))


def test_a_users_model_file_passes(tmp_path):
    assert {"config", "chunks", "causality"} <= set(check_model(load(tmp_path, GOOD)))


@pytest.mark.parametrize(("right", "wrong", "law"), FAULTS.values(), ids=FAULTS)
def test_a_faulty_model_file_is_caught(tmp_path, right, wrong, law):
    assert right in GOOD
    with pytest.raises(LawBroken) as caught:
        check_model(load(tmp_path, GOOD.replace(right, wrong)))
    assert caught.value.law == law, str(caught.value)


def test_unknown_kind_is_not_skipped(tmp_path):
    with pytest.raises(UsageError, match="laws are known for causal"):
        check_model(load(tmp_path, GOOD.replace('KIND = "causal"', 'KIND = "oracle"')))


def test_unknown_name():
    with pytest.raises(UsageError, match="there is no model 'lstmm'"):
        check_model("lstmm")
