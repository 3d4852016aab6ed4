"""Every model that is discovered goes through the laws of its kind."""

from __future__ import annotations

import textwrap
import types
from dataclasses import replace
from typing import Literal, get_args, get_origin

import pytest

from tests.thorough import every
from unrolled.core import discover
from unrolled.core.config import choices_of
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
        name: [None, 1] if type(None) in get_args(field.annotation) else [*choices_of(field)]
        for name, field in type(config).model_fields.items()
        if name != "scan"
        and (get_origin(field.annotation) is Literal or type(None) in get_args(field.annotation) or choices_of(field))
        and get_origin(field.annotation) not in (dict, list, tuple)
    }
    for i in range(1, max(map(len, choices.values()), default=1)):
        yield config.updated({name: options[i % len(options)] for name, options in choices.items()})


def with_tiny(module, config):
    varied = types.ModuleType(module.__name__)
    varied.MODEL = replace(module.MODEL, tiny=config)
    return varied


@pytest.mark.parametrize("name", every(6, discover.models.names()))
def test_every_choice_obeys_the_laws(name):
    module = discover.models.load(name)
    for config in variants(module.MODEL.tiny):
        try:
            check_model(with_tiny(module, config))
        except LawBroken as broken:
            raise AssertionError(f"{config!r}: {broken}") from broken


@pytest.mark.parametrize("scan", ["loop", "deer"])
def test_a_model_obeys_the_laws_with_every_scan(scan):
    module = discover.models.load("elman")
    assert "chunks" in check_model(with_tiny(module, module.MODEL.tiny.updated({"scan": scan})))


GOOD = '''
"""A model of the user's own."""
from torch import nn
from unrolled.core.compose import Serial
from unrolled.core.config import Config as Base
from unrolled.core.spec import ModelSpec

class Config(Base):
    width: int = 8

def make(config, sizes):
    body = Serial(nn.Linear(sizes.d_in, config.width), nn.Tanh())
    body.d_out = config.width
    return body

MODEL = ModelSpec(summary="a line", kind="causal", config=Config, tiny=Config(width=3), make=make)
'''

FAULTS = {
    "d_out is missing": ("body.d_out = config.width", "pass", "form"),
    "d_out is wrong": ("body.d_out = config.width", "body.d_out = 99", "form"),
    "head of another width": ("make=make", "make=make, owns_head=True", "form"),
    "another kind than it says": ('kind="causal"', 'kind="encoder"', "form"),
    "null that a recipe cannot say": (
        "tiny=Config(width=3)",
        "tiny=type('Other', (Config,), {'__annotations__': {'depth': int | None}, 'depth': 1})(depth=None)",
        "config",
    ),
    "weights that are not in the state dict": (
        "Serial(nn.Linear(sizes.d_in, config.width), nn.Tanh())",
        "Serial(nn.Linear(sizes.d_in, config.width), nn.BatchNorm1d(config.width))",
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
    with pytest.raises(UsageError, match="expected one of causal"):
        check_model(load(tmp_path, GOOD.replace('kind="causal"', 'kind="oracle"')))


def test_unknown_name():
    with pytest.raises(UsageError, match="there is no model 'lstmm'"):
        check_model("lstmm")
