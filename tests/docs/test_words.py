"""Old turns of phrase stay out of everything that people read: help, errors, notes, the report, README and docs."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

from unrolled.cli.main import commands
from unrolled.cli.options import for_help, summary
from unrolled.core import discover

ROOT = Path(__file__).parents[2]
ROOMS = sorted({path.parent.relative_to(ROOT) for path in (ROOT / "unrolled").rglob("*.py")})
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

PHRASES = {  # regular expressions by what to write instead; they hold for every text, docstrings included
    "fitted in closed form": r"solved, not|not descended",
    "newly initialised": r"\b(begun|begins?|began|start\w*) anew\b|as chance made it",
    "resume, continue": r"\b(go|goes|going|gone|went) on\b",
    "distinguish, identify; the difference is not significant": (
        r"\b(tell|tells|telling|told)\b[^.;:]{0,60}\bapart\b|\bbeyond chance\b"
    ),
    "invalid value ...: expected ...": r"\bis not possible: allowed\b|\ballowed is\b|\bis not possible\b",
    "internal error, please report it": r"\bof ours\b",
    "newest first": r"\b(the )?youngest\b",
    "freed": r"\b(is|are) free again\b",
    "no longer available": r"\bnot there any ?more\b",
    "sharpens, flattens": r"\bbolder\b|\bwilder\b",
    "shows how a file will be parsed": r"\bunderstood of\b",
    "training stops when the budget is used up": r"\bstops in time\b|\bsteps it came to\b",
    "reproduce this run with": r"\bsame weights again\b",
    "not dominated": r"\bbeaten in both\b|\bwhoever\b",
    "mean, on average": r"\bin the mean\b(?! square)",
    "predicted; residual; observed accuracy": r"\bsaid - true\b|\bshare that was right\b|\bsaid less true\b",
    "split": (
        r"\b(training|test|validation|held-out) parts?\b|\bpart (train|valid|test)\b"
        r"|\bfor (no|one|which) part\b|\bparts? of the data\b|\bthe parts are given\b"
    ),
    "finished": r"\b(come|came|comes) to (its|their|an) end\b",
    "is reported, is an error": r"\b(is|are) told\b",
    "fix": r"\bmend(s|ed)?\b",
    "evaluation alone needs ...": r"\bnothing was trained, for\b",
    "because": r", for (it|they|there|nothing|none|nobody|this (model|run|task))\b",
}
WORDS = {  # single words, which hold for what people see: not for docstrings of functions, nor for prose
    "predict, predicted": r"\bsaid\b|\btold\b|\btells of\b",
    "target, prediction": r"(?<!<)\b(answers?|answered)\b(?!>)",  # `Answer` is a class, (?P<answer>..) a group
    "metric, score": r"(?<!<)(?<!</)\b[Ff]igures?\b(?!/)",
    "integer": r"\bwhole numbers?\b",
}
BEFORE = [
    "gru is solved, not descended",
    "the head is begun anew",
    "go on with an interrupted run",
    "the text to go on from",
    "this data does not tell gru and lstm apart",
    "its lead over every other row is beyond chance",
    "x = 'a' is not possible: allowed is a whole number >= 1",
    "a mistake of ours",
    "runs, the youngest first",
    "12 MB are free again",
    "the directory is not there any more",
    "Below 1 bolder, above 1 wilder",
    "says what is understood of a text before anything is trained",
    "A time budget stops in time and says how many steps it came to",
    "The same weights again: --steps 300",
    "whoever is on the front is beaten in both by nobody",
    "Picked by 5 folds of the training part alone: 3.2 in the mean",
    "said - true",
    "share that was right",
    "nothing was trained, for the figures on held-out data take 12 s of the time",
    "cannot be frozen, for it is begun anew and would stay as chance made it",
    "what the model said",
    "one answer for a whole sequence",
    "how many parts: whole numbers",
]


def found(text: str, *lists: dict[str, str]) -> list[str]:
    """What is to be written otherwise in a text, each with its replacement."""
    flat = re.sub(r"\s+", " ", re.sub(r"`[^`\n]+`", "`..`", text))  # names in code are what they are
    return [
        f"{match[0]!r} in {flat[max(match.start() - 60, 0) : match.end() + 40]!r}: say {instead!r}"
        for each in lists
        for instead, pattern in each.items()
        for match in re.finditer(pattern, flat, re.IGNORECASE if each is PHRASES else 0)
    ]


def texts(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Every string of a file with its line, and whether it is the docstring of a module, class or function."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, owners) and node.body and isinstance(node.body[0], ast.Expr)
    }
    pieces = {id(piece) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for piece in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(p.value if isinstance(p, ast.Constant) else "{}" for p in node.values), False
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in pieces:
            yield node.lineno, node.value, id(node) in docstrings


def is_sentence(text: str) -> bool:
    """Whether a string is for people: several words, and not a style sheet."""
    return len(re.findall(r"[A-Za-z]{2,}", text)) >= 3 and not re.search(r"\{[^{}]*:[^{}]*;", text)


@pytest.mark.parametrize("room", ROOMS, ids=str)
def test_strings_of_the_package(room: Path) -> None:
    wrong = []
    for path in sorted((ROOT / room).glob("*.py")):
        for line, text, is_docstring in texts(ast.parse(path.read_text(encoding="utf-8"))):
            lists = [PHRASES] if is_docstring or not is_sentence(text) else [PHRASES, WORDS]
            wrong += [f"{path.name}, line {line}: {each}" for each in found(text, *lists)]
    assert wrong == []


@pytest.mark.parametrize("path", sorted((ROOT / "unrolled").rglob("*.jinja")), ids=lambda path: path.name)
def test_templates(path: Path) -> None:
    page = re.sub(r"\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert found(page, PHRASES, WORDS) == []


def help_of(name: str, *words: str) -> str:
    """The help of a command and of all its options."""
    app = typer.Typer(add_completion=False)
    app.command(name)(for_help(importlib.import_module(f"unrolled.cli.{name}").command, [*words, "--help"]))
    made = typer.main.get_command(app)
    return "\n".join([made.help or "", *(each.help or "" for each in made.params)])  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", commands())
def test_help_of_commands(name: str) -> None:
    assert found(help_of(name), PHRASES, WORDS) == []


@pytest.mark.parametrize("task", discover.tasks.names())
def test_help_of_tasks(task: str) -> None:
    assert found(help_of("train", "--task", task), PHRASES, WORDS) == []
    assert found(summary(discover.tasks.told(task)), PHRASES, WORDS) == []


@pytest.mark.parametrize("model", discover.models.names())
def test_help_of_models(model: str) -> None:
    assert found(help_of("train", "--model", model), PHRASES, WORDS) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages(page: Path) -> None:
    assert found(page.read_text(encoding="utf-8"), PHRASES) == []


@pytest.mark.parametrize("sentence", BEFORE)
def test_the_old_phrases_are_found(sentence: str) -> None:
    assert found(sentence, PHRASES, WORDS) != []
