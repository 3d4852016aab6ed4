"""A user's model file that says something wrong gets one sentence with the file and the name, from every command."""

from __future__ import annotations

from pathlib import Path

import pytest

import unrolled
from tests.commands import run_unrolled
from unrolled.core import discover
from unrolled.core.errors import UsageError

GOOD = '''"""Mine: a linear map."""

from torch import nn

from unrolled.core import config
from unrolled.core.compose import Each
from unrolled.core.spec import ModelSpec


class Config(config.Config):
    d_state: int = 4


class Body(Each):
    def __init__(self, module, d_out):
        super().__init__(module)
        self.d_out = d_out


def make(config, sizes):
    return Body(nn.Linear(sizes.d_in, config.d_state), config.d_state)


MODEL = ModelSpec(
    summary="a linear map",
    kind="causal",
    config=Config,
    tiny=Config(),
    make=make,
)
'''

WRONG = {
    "no declaration": (("MODEL =", "MODELL ="), "a model file must define MODEL"),
    "no spec": (("MODEL =", "MODEL = 3\n_ ="), "MODEL must be a ModelSpec"),
    "no kind": (('    kind="causal",\n', ""), "line 24: a ModelSpec must have kind"),
    "odd kind": (('"causal"', '"casual"'), "line 26: invalid value kind = 'casual': expected one of causal, encoder"),
    "kind of another type": (('"causal"', "3"), "line 26: invalid value kind = 3"),
    "no make": (("    make=make,\n", ""), "line 24: a ModelSpec must have make"),
    "make of one": (("make(config, sizes", "make(sizes"), r"line 29: make must take \(config, sizes\), found"),
    "make is a number": (("make=make", "make=3"), "line 29: make must be a function"),
    "no tiny": (("    tiny=Config(),\n", ""), "a ModelSpec must have tiny"),
    "tiny of another class": (("tiny=Config()", "tiny={}"), "line 28: invalid value tiny = {}: expected settings of"),
    "plain config": (("class Config(config.Config)", "class Config"), "line 27: invalid value config"),
    "a setting without default": (("d_state: int = 4", "d_state: int"), "validation error"),
    "odd input": (("make=make", 'make=make, reads=("words",)'), "line 29: invalid value reads = .*a tuple of"),
    "input as a word": (("make=make", 'make=make, reads="tokens"'), "invalid value reads = 'tokens': expected a tuple"),
    "no input": (("make=make", "make=make, reads=()"), "invalid value reads"),
    "odd outputs": (("make=make", 'make=make, outputs=("all",)'), "invalid value outputs"),
    "odd preset": (("make=make", 'make=make, preset="fast"'), "invalid value preset = 'fast'"),
    "odd recipe": (("make=make", "make=make, recipe=3"), "invalid value recipe = 3"),
    "odd head": (("make=make", "make=make, owns_head=1"), "invalid value owns_head = 1: expected True or False"),
    "odd closed form": (("make=make", 'make=make, closed_form="series"'), "invalid value closed_form = 'series'"),
    "odd resize": (("make=make", "make=make, resize=lambda: 3"), r"resize must take \(config, width\)"),
    "unknown field": (("make=make", "make=make, knd=3"), "line 29: a ModelSpec has no field 'knd'; did you mean"),
    "syntax": (("def make(", "def make(("), "SyntaxError"),
    "missing package": (("from torch", "import no_such_package\nfrom torch"), "ModuleNotFoundError"),
    "fails": (("MODEL =", "1 / 0\nMODEL ="), "ZeroDivisionError"),
    "leaves": (("MODEL =", "raise SystemExit(0)\nMODEL ="), "SystemExit"),
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
    spec = discover.model(discover.models.add_file(own))
    assert (spec.kind, spec.reads, spec.owns_head, spec.closed_form, spec.preset) == (
        "causal", ("embedded",), False, (), "thorough",
    )  # fmt: skip


@pytest.mark.parametrize("command", ["check", "train", "compare"])
def test_every_command_says_it_without_an_internal_error(command: str, own: Path, tmp_path: Path) -> None:
    own.write_text(GOOD.replace("MODEL =", "MODELL ="))
    (tmp_path / "text.txt").write_text("abcabcabcabc\n" * 200)
    words = [own] if command == "check" else [tmp_path / "text.txt", "--with", own, "-o", tmp_path / "out"]
    done = run_unrolled(command, *words, code=2)
    says = "a model file must define MODEL" if command == "check" else "defines neither MODEL (a model)"
    assert f"{own}: {says}" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


TEXTS = [f"row {i} of {i * i}" for i in range(60)]
QUICK = {"steps": 2, "d_embedding": 4, "batch_size": 4, "threads": 1, "split": "80/20"}


@pytest.mark.parametrize(("before", "after", "words"), [
    ("return Body(", "return list((", "kind is 'causal', but make returns list; expected a Causal"),
    ("        self.d_out = d_out\n", "", "has no attribute d_out, the width of its output"),
    ("    return Body", "    sizes.size\n    return Body", r"my_model.py, line 21, in make: AttributeError: 'Sizes'"),
    ("        self.d_out = d_out\n", "        self.d_out = d_out\n\n    def forward(self, x, state=None):\n"
     "        return x.nothing, ()\n", r"my_model.py, line 20, in forward: AttributeError"),
    ("make=make", 'make=make, closed_form=("tokens",)', "declares closed_form, but .* no method solve"),
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
