"""Examples for `predict` and `score`: read some at a time, so that a file of any size passes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

Run = Annotated[str, typer.Argument(help="A run directory, or a comparison for the model it selected.")]
Data = Annotated[
    str, typer.Argument(help="A file with one example per line (or row); `-` reads standard input.", metavar="DATA")
]
Condition = Annotated[str | None, typer.Option(help="The class of all examples, where the data has no column of it.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 or mps.")]


def answers(
    run: str, data: str, verb: str, condition: str | None, own_file: str | None, device: str | None
) -> Iterator[dict[str, Any]]:
    """What `run.predict` or `run.score` says of each example, in order."""
    from unrolled.runs.run import load

    return answers_of(load(run, own_file=own_file, device=device), data, verb, condition)


def answers_of(opened: Any, data: str, verb: str, condition: str | None) -> Iterator[dict[str, Any]]:
    """The same, of a run that is open."""
    for some in opened.examples(data):
        conditions = [condition or example.label for example in some] if condition or some[0].label else None
        yield from getattr(opened, verb)([example.text for example in some], conditions)
        sys.stdout.flush()
