"""`unrolled score`: how probable does a saved run find each line?"""

from __future__ import annotations

import json as jsons
import sys
from typing import Annotated

import typer

from unrolled.cli.options import Json, With


def command(
    run: Annotated[str, typer.Argument(help="A run directory.")],
    data: Annotated[str, typer.Argument(help="A file with one example per line (or row); `-` reads standard input.")],
    condition: Annotated[
        str | None, typer.Option(help="The class of all examples, where the data has no column of it.")
    ] = None,
    with_: With = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 or mps.")] = None,
    json: Json = False,
) -> None:
    """Log-probability of each example, in order.

    Prints log P in nats, the number of tokens and the text, separated by tabs; JSON lines with --json.

    Examples:

        unrolled score runs/lstm-python-docs lines.txt

        echo "import sys" | unrolled score runs/lstm-python-docs - --json
    """
    from unrolled.cli.examples import read_examples
    from unrolled.runs.run import load

    opened = load(run, own_file=with_, device=device)
    reader = getattr(opened.task, "read_examples", read_examples)  # a task of other data than text reads it itself
    for some in reader(data, opened.config.data):
        conditions = [condition or example.label for example in some] if condition or some[0].label else None
        for line in opened.score([example.text for example in some], conditions):
            if json:
                sys.stdout.write(jsons.dumps(line, ensure_ascii=False) + "\n")
            else:
                sys.stdout.write(f"{line['logp']:.4f}\t{line['tokens']}\t{line['text']}\n")
        sys.stdout.flush()
