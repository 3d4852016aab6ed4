"""A user's question file that says something wrong gets one sentence with the file, the line and what to change."""

from __future__ import annotations

from pathlib import Path

import pytest

from unrolled.core import discover
from unrolled.core.errors import UsageError

GOOD = '''"""Mine."""
from unrolled.core import config
from unrolled.core.inspection import QuestionSpec
from unrolled.pictures.answer import Answer


class Config(config.Config):
    length: int = 4


def ask(run, value, config):
    return Answer("nothing")


QUESTION = QuestionSpec(
    summary="What is asked?",
    config=Config,
    ask=ask,
)
'''

WRONG = {
    "no declaration": (("QUESTION =", "QUESTIONS ="), "a question file must define QUESTION$"),
    "no spec": (("QUESTION =", "QUESTION = 3\n_ ="), "QUESTION must be a QuestionSpec .unrolled.core.inspection."),
    "no ask": (("    ask=ask,\n", ""), "line 15: a QuestionSpec must have ask; see docs/own_question.md"),
    "no summary": (('    summary="What is asked?",\n', ""), "line 15: a QuestionSpec must have summary"),
    "odd summary": (('"What is asked?"', "None"), "line 16: invalid value summary = None: expected a string"),
    "by position": (("    config=Config,\n    ask=ask,\n", "    Config)\n"), "SyntaxError"),
    "without names": (('summary="What', '"What'), "line 15: the fields of a QuestionSpec are keyword arguments"),
    "ask of one": (("ask(run, value, config)", "ask(run)"), r"line 18: ask must take \(run, value, config\), found"),
    "ask is a word": (("ask=ask", 'ask="ask"'), "line 18: ask must be a function"),
    "applies of none": (("ask=ask", "ask=ask, applies=lambda: 1"), r"line 18: applies must take \(run\)"),
    "aliases as a word": (("ask=ask", 'ask=ask, aliases="me"'), "line 18: invalid value aliases = 'me': expected a"),
    "plain config": (("(config.Config)", ""), "line 17: invalid value config"),
    "a setting without default": (("int = 4", "int"), "line 17: the settings length of Config have no default"),
    "unknown field": (("ask=ask", "ask=ask, sumary=3"), "line 18: a QuestionSpec has no field 'sumary'; did you mean"),
    "fails": (("QUESTION =", "1 / 0\nQUESTION ="), "line 15: import failed .ZeroDivisionError"),
}  # fmt: skip


@pytest.fixture
def own(tmp_path: Path):
    path = tmp_path / "my_question.py"
    path.write_text(GOOD)
    yield path
    discover.questions.forget("my-question")


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_refused_with_what_is_wrong(case: str, own: Path) -> None:
    (before, after), words = WRONG[case]
    assert before in GOOD
    own.write_text(GOOD.replace(before, after, 1))
    with pytest.raises(UsageError, match=words) as caught:
        discover.questions.add_file(own)
    assert str(own) in str(caught.value)
    assert "my-question" not in discover.questions.names()


@pytest.mark.parametrize(("text", "line"), [
    (GOOD.replace("Spec\n", "Spec as Declared\n").replace("= QuestionSpec(", "= Declared("), 15),
    (GOOD.replace("from unrolled.core.inspection import QuestionSpec", "\nfrom unrolled.core import inspection")
     .replace("= QuestionSpec(", "= inspection.QuestionSpec("), 19),
    ("# coding: latin-1\n# \xe9t\xe9\n" + GOOD, 20),
])  # fmt: skip
def test_the_line_is_found_however_the_file_is_written(own: Path, text: str, line: int) -> None:
    own.write_bytes(text.replace("ask=ask", "ask=3").encode("latin-1"))
    with pytest.raises(UsageError, match=f"line {line}: ask must be a function"):
        discover.questions.add_file(own)


def test_a_file_says_its_room_before_it_is_run(own: Path) -> None:
    own.write_text("raise SystemExit\n" + GOOD)
    assert discover.rooms_of(own) == [discover.questions]
    own.write_text("import somewhere\nfrom somewhere import MODEL\n" + GOOD)
    assert discover.rooms_of(own) == [discover.models, discover.questions]
    own.write_text("if True:\n    QUESTION: object = 3\n")
    assert discover.rooms_of(own) == [discover.questions]
    own.write_text("def MODEL():\n    QUESTION = 3\n")
    with pytest.raises(UsageError, match="neither MODEL"):
        discover.rooms_of(own)
    with pytest.raises(UsageError, match=r"none\.py: no such Python file"):
        discover.rooms_of(own.parent / "none.py")


def test_a_good_file_applies_to_every_run(own: Path) -> None:
    spec = discover.question(discover.questions.add_file(own))
    assert spec.applies(object()) is None
    assert spec.config().model_dump() == {"length": 4}
