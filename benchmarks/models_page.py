"""Makes docs/models.md: models, tasks, inspect questions and built-in data sets as the code declares them."""

from __future__ import annotations

from typing import get_args

from benchmarks.page import DOCS, table
from unrolled.cli.models import WIDTH, facts_of, field_words, tick_words
from unrolled.core import discover
from unrolled.core.discover import Room
from unrolled.core.spec import Kind
from unrolled.runs.cost import LENGTH

PAGE = DOCS / "models.md"
HEAD = """# Models, tasks and built-in data

This page lists what you can train and what you can train it on. It is generated from the code by `make docs`.
`unrolled models lstm` prints the equations and the settings of a model, `unrolled tasks classify` those of a task.
"""
KINDS = {
    "causal": "They read a sequence from left to right and can run on a stream.",
    "encoder": "They read the whole sequence at once.",
    "conditional": "They read a source and write a target.",
    "memory": "They store patterns and recall them from damaged copies.",
}


def in_package(room: Room) -> list[str]:
    """The names of a room without those of files that have joined it."""
    return [name for name in room.names() if room.file(name) is None]


def models() -> str:
    """A table of descriptions for each kind of model, and one of costs for all."""
    facts = [facts_of(name) for name in in_package(discover.models)]
    text = "\n## Models\n"
    for kind in get_args(Kind):
        rows = [[f"`{fact['name']}`", fact["what"], fact["reference"]] for fact in facts if fact["kind"] == kind]
        text += f"\n### {kind.capitalize()} models\n\n{KINDS[kind]}\n\n"
        text += table(["model", "description", "reference"], rows) + "\n"
    rows = [
        [f"`{fact['name']}`", f"{fact['parameters']:,}", field_words(fact), tick_words(fact), str(fact["serial_depth"])]
        for fact in facts
    ]
    text += (
        f"\n### Costs\n\nFor a model at its default size, with inputs and outputs of width {WIDTH}. t is the number of "
    )
    text += (
        "previous positions; models without a tick read the whole sequence again. The serial depth is the number of "
    )
    text += f"layer applications that must wait for one another to train on {LENGTH} positions.\n\n"
    titles = ["model", "parameters", "receptive field", "multiply-adds per tick", "serial depth"]
    return text + table(titles, rows) + "\n"


def tasks() -> str:
    rows = []
    for name in in_package(discover.tasks):
        module = discover.tasks.load(name)
        what = (module.__doc__ or "").strip().splitlines()[0].split(": ", 1)[-1].rstrip(".")
        rows.append([f"`{name}`", what, ", ".join(module.Task.ACCEPTS), f"`{module.Task.SCORE}`"])
    return "\n## Tasks\n\n" + table(["task", "description", "models", "score"], rows) + "\n"


def questions() -> str:
    rows = [[f"`{name}`", discover.question(name).summary] for name in in_package(discover.questions)]
    text = "\n## Inspect questions\n\n`unrolled inspect RUN QUESTION` looks inside a saved run "
    return text + "([inspecting a run](inspect.md)).\n\n" + table(["question", "description"], rows) + "\n"


def builtins() -> str:
    rows = []
    for name in in_package(discover.builtins):
        spec = discover.builtins.declaration(name)
        rows.append([f"`builtin:{name}`", spec.summary, spec.size, spec.licence])
    text = "\n## Built-in data sets\n\nThey need no download and no file.\n\n"
    return text + table(["data set", "description", "size", "licence"], rows) + "\n"


def page() -> str:
    return HEAD + models() + tasks() + questions() + builtins()
