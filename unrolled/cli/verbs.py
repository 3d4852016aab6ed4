"""`unrolled VERB RUN INPUT`: the command of a verb that has no file of its own here, such as one of a user."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated, Any

import typer

from unrolled.cli.asked import Data, Device, RunPath, Weights, print_results, say_notes
from unrolled.cli.options import Json, join, with_options
from unrolled.cli.rows import Out, write
from unrolled.core import discover
from unrolled.core.errors import UsageError

Withs = Annotated[
    list[str] | None,
    typer.Option("--with", help="Your own Python file that defines the verb or the run's model; may be repeated."),
]
Prompt = Annotated[str, typer.Argument(help="The input to continue.", metavar="prompt")]
Words = Annotated[list[str], typer.Argument(help="One or more words.", metavar="WORD")]
RunOrFile = Annotated[str, typer.Argument(help="A run directory, a comparison, or a file of word vectors.")]
INPUTS: dict[str, Any] = {"examples": Data, "prompt": Prompt, "words": Words}
TAKEN = {"run", "inputs", "with", "device", "weights", "out", "json", "help"}  # what every verb has


def command_of(name: str) -> Callable[..., None]:
    """The command of a verb: its request is its options."""
    spec = discover.verb(name)
    if clash := TAKEN & spec.request.model_fields.keys():
        raise UsageError(
            f"the setting '{min(clash)}' of the verb '{name}' clashes with an option that all verbs have; rename it"
        )
    alone = spec.takes != "examples"

    def run_verb(
        run: RunPath,
        inputs: Any,
        with_: Withs = None,
        device: Device = None,
        weights: Weights = None,
        out: Out = None,
        json: Json = False,
        values: dict[str, Any] = {},  # noqa: B006
    ) -> None:
        from unrolled.core.task import Given
        from unrolled.runs.run import load

        task: Any = None
        found: Any
        if spec.of_file is not None and os.path.isfile(run):
            if weights is not None:
                raise UsageError(f"--weights applies to saved runs, and {run} is a file: leave it out")
            given = [*map(Given, inputs)]
            found = ((given[0], each) for each in spec.of_file(run, given, spec.request.parse(values)))
        else:
            opened = load(run, own_file=join(with_ or [], discover.verbs), device=device, weights=weights)
            say_notes(opened)
            task, found = opened.task, opened.each(name, inputs, values)
        with discover.verbs.own_mistakes():
            if out is not None:
                write(out, "-" if alone else inputs, found, task, rows=spec.rows if alone else None)
            else:
                print_results(found, None if json else spec.writers.get("text"))

    run_verb.__annotations__["inputs"] = INPUTS[spec.takes]
    if spec.of_file is not None:
        run_verb.__annotations__["run"] = RunOrFile
    run_verb.__doc__ = spec.summary
    return with_options({"": spec.request})(run_verb)


def join_verbs(words: list[str]) -> None:
    """Let the verbs of users' files, which are named in a command, be commands."""
    for at, word in enumerate(words):
        path = words[at + 1] if word == "--with" and at + 1 < len(words) else word.removeprefix("--with=")
        if (path != word or word.startswith("--with=")) and discover.verbs in discover.rooms_of(path):
            discover.verbs.add_file(path)
