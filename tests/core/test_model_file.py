"""A user's model file that says something wrong gets one sentence with the file and the name, from every command."""

from __future__ import annotations

from pathlib import Path

import pytest

import unrolled
from tests.commands import run_unrolled
from unrolled.core import discover
from unrolled.core.errors import UsageError
from unrolled.core.model_file import TARGETS, declared

GOOD = '''"""Mine: a linear map."""

from torch import nn

from unrolled.core import config
from unrolled.core.compose import Each

KIND = "causal"


class Config(config.Config):
    d_state: int = 4


TINY = Config()


class Body(Each):
    def __init__(self, module, d_out):
        super().__init__(module)
        self.d_out = d_out


def make(config, d_in, d_out):
    return Body(nn.Linear(d_in, config.d_state), config.d_state)
'''

WRONG = {
    "no kind": (('KIND = "causal"\n', ""), "a model file must define KIND"),
    "odd kind": (('"causal"', '"casual"'), "invalid value KIND = 'casual': expected one of causal, encoder"),
    "kind of another type": (('"causal"', "3"), "invalid value KIND = 3"),
    "no make": (("def make", "def made"), "must define make"),
    "make of two": (("make(config, d_in", "make(d_in"), r"make must take \(config, d_in, d_out\), found"),
    "make is a number": (("def make", "make = 3\ndef made"), "make must be a function"),
    "no tiny": (("TINY = Config()", ""), "must define TINY"),
    "tiny of another class": (("TINY = Config()", "TINY = {}"), "TINY must be a Config of this file"),
    "plain config": (("class Config(config.Config)", "class Config"), "Config must be a class derived from"),
    "a setting without default": (("d_state: int = 4", "d_state: int"), "validation error"),
    "odd input": (("TINY =", 'INPUT = "words"\nTINY ='), "invalid value INPUT = 'words': expected one of tokens"),
    "odd preset": (("TINY =", 'PRESET = "fast"\nTINY ='), "invalid value PRESET = 'fast'"),
    "odd recipe": (("TINY =", "RECIPE = 3\nTINY ="), "invalid value RECIPE = 3"),
    "odd head": (("TINY =", "OWNS_HEAD = 1\nTINY ="), "invalid value OWNS_HEAD = 1: expected True or False"),
    "odd closed form": (("TINY =", 'CLOSED_FORM = "series"\nTINY ='), "invalid value CLOSED_FORM = 'series'"),
    "table without features": (('"causal"', '"table"'), "must define FEATURES"),
    "syntax": (("def make(", "def make(("), "SyntaxError"),
    "missing package": (("from torch", "import no_such_package\nfrom torch"), "ModuleNotFoundError"),
    "fails": (("TINY =", "1 / 0\nTINY ="), "ZeroDivisionError"),
    "leaves": (("TINY =", "raise SystemExit(0)\nTINY ="), "SystemExit"),
}  # fmt: skip


@pytest.fixture
def own(tmp_path: Path):
    path = tmp_path / "my_model.py"
    path.write_text(GOOD)
    yield path
    discover.models.forget("my-model")


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_refused_with_its_name_and_what_is_wrong(case: str, own: Path) -> None:
    (before, after), words = WRONG[case]
    assert before in GOOD
    own.write_text(GOOD.replace(before, after, 1))
    with pytest.raises(UsageError, match=words) as caught:
        discover.models.add_file(own)
    assert str(own) in str(caught.value)
    assert "my-model" not in discover.models.names()


def test_a_good_file_has_the_usual_values(own: Path) -> None:
    said = declared(discover.models.load(discover.models.add_file(own)))
    assert (said.kind, said.input, said.owns_head, said.closed_form, said.preset) == (
        "causal", None, False, (), "thorough",
    )  # fmt: skip


@pytest.mark.parametrize("name", discover.models.names())
def test_every_model_of_the_package_says_nothing_wrong(name: str) -> None:
    said = declared(discover.models.load(name))
    assert set(said.closed_form) <= set(TARGETS)


@pytest.mark.parametrize("command", ["check", "train", "compare"])
def test_every_command_says_it_without_an_internal_error(command: str, own: Path, tmp_path: Path) -> None:
    own.write_text(GOOD.replace('KIND = "causal"\n', ""))
    (tmp_path / "text.txt").write_text("abcabcabcabc\n" * 200)
    words = [own] if command == "check" else [tmp_path / "text.txt", "--with", own, "-o", tmp_path / "out"]
    done = run_unrolled(command, *words, code=2)
    assert f"{own}: a model file must define KIND" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


TEXTS = [f"row {i} of {i * i}" for i in range(60)]
QUICK = {"steps": 2, "d_embedding": 4, "batch_size": 4, "threads": 1, "split": "80/20"}


@pytest.mark.parametrize(("before", "after", "words"), [
    ("return Body(", "return list((", "KIND is 'causal', but make returns list; expected a Causal"),
    ("        self.d_out = d_out\n", "", "has no d_out, the width of its output"),
    ("    return Body", "    d_in.size\n    return Body", r"my_model.py, line 25, in make: AttributeError: 'int'"),
    ("        self.d_out = d_out\n", "        self.d_out = d_out\n\n    def forward(self, x, state=None):\n"
     "        return x.nothing, ()\n", r"my_model.py, line 24, in forward: AttributeError"),
    ("TINY =", 'CLOSED_FORM = ("tokens",)\nTINY =', "defines CLOSED_FORM, but what make returns has no method solve"),
])  # fmt: skip
def test_what_goes_wrong_inside_the_file_is_told_as_the_files(
    own: Path, tmp_path: Path, before: str, after: str, words: str
) -> None:
    changed = GOOD.replace(before, after, 1)
    own.write_text(changed.replace("config.d_state)\n", "config.d_state))\n") if "list((" in after else changed)
    with pytest.raises(UsageError, match=words):
        unrolled.train(TEXTS, own_file=own, out=tmp_path / "run", settings=QUICK)


def test_a_saved_run_asks_for_a_file_that_is_there(own: Path, tmp_path: Path) -> None:
    unrolled.train(TEXTS, own_file=own, out=tmp_path / "run", settings=QUICK)
    with pytest.raises(UsageError, match=r"other\.py: no such Python file"):
        unrolled.load(tmp_path / "run", own_file=tmp_path / "other.py")
