"""A model and a question, one file each from any folder, are used from the command line like those of the package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import run_unrolled

MODEL = '''"""Mine: a linear map of each token."""

from torch import nn

from unrolled.core import config
from unrolled.core.compose import Each
from unrolled.core.spec import ModelSpec


class Config(config.Config):
    width: int = 4


class Body(Each):
    def __init__(self, d_in, d_out):
        super().__init__(nn.Linear(d_in, d_out))
        self.d_out = d_out


MODEL = ModelSpec(
    summary="a linear map of each token", kind="causal", config=Config, tiny=Config(),
    make=lambda config, sizes: Body(sizes.d_in, config.width),
)
'''

QUESTION = '''"""Letters of the input."""

from unrolled.core import config
from unrolled.core.inspection import QuestionSpec
from unrolled.pictures.answer import Answer


class Config(config.Config):
    letter: str = "e"


def ask(run, value, config):
    n = value.count(config.letter)
    return Answer(f"There are {n} of {config.letter}.", {"found": n, "model": run.config.model})


QUESTION = QuestionSpec(summary="How often is a letter in the input?", config=Config, ask=ask)
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both files, a text, and a run of each kind of model."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "my_model.py").write_text(MODEL)
    (folder / "my_question.py").write_text(QUESTION)
    (folder / "text.txt").write_text("the cat sat on the mat.\n" * 60)
    quick = ["--steps", 2, "--batch-size", 4, "--d-embedding", 4, "--set", "threads=1", "--split", "80/20"]
    run_unrolled("train", "text.txt", "--with", "my_model.py", "-o", "mine", *quick, cwd=folder)
    run_unrolled("train", "text.txt", "--model", "elman", "-o", "theirs", *quick, cwd=folder)
    return folder


def test_both_are_listed_with_those_of_the_package(folder: Path) -> None:
    models = run_unrolled("models", "--with", "my_model.py", cwd=folder).stdout
    assert "my-model" in models and "a linear map of each token" in models and "lstm" in models
    shown = run_unrolled("inspect", "theirs", "--with", "my_question.py", "--json", cwd=folder).stdout
    listed = {each["question"]: each for each in json.loads(shown)}
    assert listed["my-question"]["what"] == "How often is a letter in the input?"
    assert listed["my-question"]["not"] is None
    assert listed["my-question"]["settings"]["letter"]["default"] == "e"
    assert "gates" in listed


def test_a_question_is_asked_of_a_run_of_the_package(folder: Path) -> None:
    words = ["my-question", "the letters", "--with", "my_question.py", "--set", "letter=t"]
    shown = run_unrolled("inspect", "theirs", *words, cwd=folder).stdout
    assert "There are 3 of t." in shown
    saved = json.loads((folder / "theirs" / "inspect" / "my-question" / "numbers.json").read_text())
    assert saved["numbers"] == {"found": 3, "model": "elman"}
    assert "'my-question'" in run_unrolled("inspect", "theirs", "my-question", code=2, cwd=folder).stderr


def test_a_run_of_an_own_model_takes_both_files(folder: Path) -> None:
    both = ["--with", "my_question.py", "--with", "my_model.py"]
    said = run_unrolled("inspect", "mine", "my-question", "eee", *both, "--json", cwd=folder).stdout
    assert json.loads(said)["numbers"] == {"found": 3, "model": "my-model"}
    alone = run_unrolled("inspect", "mine", "my-question", "--with", "my_question.py", code=3, cwd=folder)
    assert "--with PATH/my_model.py" in alone.stderr
    (folder / "other").mkdir()
    (folder / "other" / "my_model.py").write_text("print('was run')\n" + MODEL)
    changed = ["--with", "my_question.py", "--with", "other/my_model.py"]
    refused = run_unrolled("inspect", "mine", "my-question", *changed, code=3, cwd=folder)
    assert "content has changed" in refused.stderr
    assert "was run" not in refused.stdout


@pytest.mark.parametrize(("text", "words"), [
    ("x = 1\n", "defines neither MODEL (a model) nor Config and Task (a task) nor READOUT (a readout)"),
    ("def QUESTION(:\n", "SyntaxError"),
    (QUESTION.replace("ask=ask", "aks=ask"), "line 17: a QuestionSpec has no field 'aks'; did you mean 'ask'"),
    (QUESTION.replace("value, config)", "config)"), "line 17: ask must take (run, value, config), found ask(run, c"),
    (QUESTION.replace("value.count", "value.cuont"), "line 13, in ask: AttributeError: 'str' object has no attribute"),
    (QUESTION.replace('{"found": n,', '{"found": {n},'), "line 14, in ask: TypeError: numbers['found'] of an Answer"),
])  # fmt: skip
def test_a_wrong_file_is_answered_in_one_sentence(folder: Path, tmp_path: Path, text: str, words: str) -> None:
    own = tmp_path / "my_question.py"
    own.write_text(text)
    done = run_unrolled("inspect", "theirs", "my-question", "tea", "--with", own, code=2, cwd=folder)
    assert str(own) in done.stderr and words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_that_a_run_does_not_need_is_refused(folder: Path) -> None:
    for words in (["score", "theirs", "text.txt"], ["inspect", "theirs", "parameters"], ["generate", "theirs"]):
        done = run_unrolled(*words, "--with", "my_model.py", code=2, cwd=folder)
        assert "was made without a Python file of yours; leave out --with my_model.py" in done.stderr
    done = run_unrolled("inspect", "theirs", "--with", "my_question.py", "--with", "my_model.py", code=2, cwd=folder)
    assert "leave out --with my_model.py" in done.stderr


def test_a_file_of_another_room_is_told_as_such(folder: Path) -> None:
    done = run_unrolled("train", "text.txt", "--with", "my_question.py", "-o", "no", code=2, cwd=folder)
    assert "my_question.py: defines a question, which runs do not use; leave it out" in done.stderr
    twice = ["--with", "my_model.py", "--with", "my_model.py"]
    assert "a run has at most one Python file" in run_unrolled("inspect", "mine", *twice, code=2, cwd=folder).stderr
