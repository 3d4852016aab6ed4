"""`unrolled evaluate`: the figures of a saved run."""

from __future__ import annotations

from typing import Annotated

import typer

from unrolled.cli.options import Json, With, print_json


def command(
    run: Annotated[str, typer.Argument(help="A run directory.")],
    data: Annotated[str | None, typer.Argument(help="Other data; default: the held-out part of its own.")] = None,
    split: Annotated[str | None, typer.Option(help="valid or test; default: test if there is one.")] = None,
    with_: With = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 or mps.")] = None,
    json: Json = False,
) -> None:
    """Measure a saved run again, on its held-out data or on another file, beside the baselines of its task.

    Examples:

        unrolled evaluate runs/lstm-python-docs

        unrolled evaluate runs/lstm-python-docs other.txt --json
    """
    from unrolled.cli.table import print_figures
    from unrolled.runs.run import load

    opened = load(run, own_file=with_, device=device)
    figures, baselines = opened.evaluate_beside(data, split)
    if json:
        print_json({**figures, "baselines": baselines})
        return
    rows = {**baselines, opened.config.model: figures}
    print_figures(f"{data or opened.config.source}: {figures['tokens']:,} {opened.task.UNIT}", rows, opened.task)
    if not baselines:
        print("No baselines: the data that this run was trained on is no longer available, or has changed.")
