"""Makes docs/models.md: models, tasks, inspect questions and built-in data sets as the code declares them."""

from __future__ import annotations

from benchmarks.page import DOCS, table
from unrolled.cli.models import WIDTH, facts_of, field_words, tick_words
from unrolled.core import discover
from unrolled.core.discover import Room
from unrolled.runs.cost import LENGTH

PAGE = DOCS / "models.md"
HEAD = """# Models, tasks and built-in data

This page lists what you can train and what you can train it on. It is generated from the code by `make docs`.
`unrolled models lstm` prints the equations and the settings of a model, `unrolled tasks classify` those of a task.
"""


def in_package(room: Room) -> list[str]:
    """The names of a room without those of files that have joined it."""
    return [name for name in room.names() if room.file(name) is None]


def models() -> str:
    rows = []
    for name in in_package(discover.models):
        fact = facts_of(name)
        rows.append([f"`{name}`", fact["kind"], fact["what"], f"{fact['parameters']:,}", field_words(fact),
                     tick_words(fact), str(fact["serial_depth"]), fact["reference"]])  # fmt: skip
    titles = ["model", "kind", "description", "parameters", "receptive field", "multiply-adds per tick", "serial depth",
              "reference"]  # fmt: skip
    text = (
        f"\n## Models\n\nCosts are those of the model at its default size, with inputs and outputs of width {WIDTH}. "
    )
    text += "The serial depth is the number of layer applications that must wait for one another to train on "
    text += (
        f"{LENGTH} positions. A *causal* model reads a sequence from left to right, an *encoder* reads all of it at "
    )
    text += "once, a *conditional* model reads a source and writes a target.\n\n"
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
