"""Messages name options as their reader gives them: flags on the command line, arguments and settings in Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import unrolled
from unrolled.core import front
from unrolled.core.errors import UnrolledError

PACKAGE = Path(unrolled.__file__).parent
FLAG = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
COMMANDS = {
    "runs/card.py",
    "runs/uses.py",
    "report/settings.py",
    "comparison/api.py",
    "core/front.py",
}  # they write commands to repeat


@pytest.fixture
def command_line() -> Iterator[None]:
    front.speak_to("command line")
    yield
    front.speak_to("python")


def test_in_python() -> None:
    assert front.option("skip_bad", True) == "skip_bad=True"
    assert front.option("time") == "time=..."
    assert front.option("own_file", "my.py") == 'own_file="my.py"'
    assert front.option("data.condition", "file") == 'settings={"data.condition": "file"}'
    assert front.invocation("compare", {"folds": 5}, "DATA") == "unrolled.compare(DATA, folds=5)"


@pytest.mark.usefixtures("command_line")
def test_on_the_command_line() -> None:
    assert front.option("skip_bad", True) == "--skip-bad"
    assert front.option("time") == "--budget"
    assert front.option("own_file", "my.py") == "--with my.py"
    assert front.option("data.condition", "file") == "--condition file"
    assert front.option("size", 32) == "--size 32"
    assert front.invocation("train", {"resume": "my runs/a"}) == "unrolled train --resume 'my runs/a'"


def messages(file: Path) -> Iterator[tuple[str, int]]:
    """The strings of a file that are no docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    lone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in lone:
            yield node.value, node.lineno


def test_no_message_outside_the_command_line_names_a_flag() -> None:
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE).as_posix()
        if not place.startswith(("cli/", "exports/", "serve/")) and place not in COMMANDS:
            found += [f"{place}, line {line}: {text}" for text, line in messages(file) if _names_a_flag(text)]
    assert found == []


def _names_a_flag(text: str) -> bool:
    """A flag within words, or the beginning of one; a declaration such as {"flag": "--budget"} is the flag alone."""
    return text.endswith(" --") or any(word != text for word in re.findall(r"(?<![\w-])(?:--[a-z][a-z-]+|-o\b)", text))


def test_the_search_sees_flags() -> None:
    assert _names_a_flag("give a larger --max-length")
    assert _names_a_flag("another directory with -o, or so")
    assert _names_a_flag("no column of that name for --")
    assert not _names_a_flag("--budget")
    assert not _names_a_flag("a -- b, x--y and 1-o")


def failures(folder: Path) -> dict[str, object]:
    """Calls that fail, by what they fail of."""
    (folder / "text.txt").write_text("some words here\n" * 200)
    (folder / "table.csv").write_text("a,b\n" + "x y,z\n" * 50)
    (folder / "pairs.tsv").write_text("source\ttarget\na\tb\n\tb\n" * 30)
    (folder / "full").mkdir()
    (folder / "full" / "file").write_text("mine")

    def train(data: object, **given: object):
        return lambda: unrolled.train(data, **{"out": folder / "run", **given})

    text = str(folder / "text.txt")
    return {
        "column": train(str(folder / "table.csv")),
        "wrong column": train(str(folder / "table.csv"), settings={"column": "c"}),
        "columns of text": train(text, settings={"column": "c"}),
        "examples": train(text, settings={"examples": "rows"}),
        "own file": train(text, own_file="no.py"),
        "full directory": train(text, out=folder / "full"),
        "pairs": train(str(folder / "pairs.tsv"), task="translate", model="seq2seq"),
        "too long": train(["ab" * 40] * 40, settings={"max_length": 3}),
        "split": train("ab"),
        "no such setting": train(text, settings={"task.time": 3}),
        "missing": train({"x": np.full((40, 5, 1), np.nan), "y": [0, 1] * 20}, task="classify", model="gru"),
        "guess": lambda: unrolled.compare(text, out=folder / "c", settings={"skip_bad": True}),
        "resume": lambda: unrolled.compare(resume=folder, settings={"steps": 3}),
        "short": lambda: unrolled.compare(text, out=folder / "c", settings={"time": "3s", "models": "gru,lstm"}),
    }


def test_python_errors_name_no_flags(tmp_path: Path) -> None:
    for name, call in failures(tmp_path).items():
        with pytest.raises(UnrolledError) as told:
            call()  # type: ignore[operator]
        assert not FLAG.search(str(told.value).replace(str(tmp_path), "")), f"{name}: {told.value}"
