"""`unrolled predict`: the one verb for every task's predictions."""

from __future__ import annotations

import json as jsons
import sys
from typing import Annotated

import typer

from unrolled.cli.options import With


def command(
    run: Annotated[str, typer.Argument(help="A run directory.")],
    data: Annotated[str, typer.Argument(help="A file with one example per line (or row); `-` reads standard input.")],
    condition: Annotated[
        str | None, typer.Option(help="The class of all examples, where the data has no column of it.")
    ] = None,
    with_: With = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 or mps.")] = None,
) -> None:
    """Predict for each example, in order: one JSON line each on standard output.

    For next-token runs: the most probable tokens after each line.

    Examples:

        unrolled predict runs/lstm-python-docs lines.txt

        echo "The impor" | unrolled predict runs/lstm-python-docs -
    """
    from unrolled.cli.examples import read_examples
    from unrolled.runs.run import load

    opened = load(run, own_file=with_, device=device)
    reader = getattr(opened.task, "read_examples", read_examples)  # a task of other data than text reads it itself
    for some in reader(data, opened.config.data):
        conditions = [condition or example.label for example in some] if condition or some[0].label else None
        for line in opened.predict([example.text for example in some], conditions):
            sys.stdout.write(jsons.dumps(line, ensure_ascii=False) + "\n")
        sys.stdout.flush()
