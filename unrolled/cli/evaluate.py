"""`unrolled evaluate`: the figures of a saved run."""

from __future__ import annotations

from typing import Annotated

import typer

from unrolled.cli.asked import Encoding, Separator, Weights, say_notes
from unrolled.cli.options import Json, With, print_json


def command(
    run: Annotated[str, typer.Argument(help="A run directory.")],
    data: Annotated[
        str | None,
        typer.Argument(help="Data to evaluate on, all of it. [default: the held-out split of --trained-on]"),
    ] = None,
    trained_on: Annotated[
        str | None,
        typer.Option(help="The data that the run was trained on; needed for its held-out split and for the baselines."),
    ] = None,
    valid: Annotated[
        str | None, typer.Option(help="With --trained-on: its validation data, if it was given separately.")
    ] = None,
    test: Annotated[
        str | None, typer.Option(help="With --trained-on: its test data, if it was given separately.")
    ] = None,
    target_file: Annotated[
        str | None, typer.Option(help="With --trained-on: its file of targets, if it was trained with one.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="valid or test. [default: test, if there is one]")] = None,
    with_: With = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 or mps.")] = None,
    weights: Weights = None,
    encoding: Encoding = None,
    separator: Separator = None,
    json: Json = False,
) -> None:
    """Evaluate a saved run on its held-out data or on another file, with the baselines of its task.

    Examples:

        unrolled evaluate runs/lstm-python-docs

        unrolled evaluate runs/lstm-python-docs other.txt --json

        unrolled evaluate runs/dan-reviews --trained-on reviews.csv
    """
    from unrolled.cli.table import print_figures
    from unrolled.runs.run import load

    opened = load(
        run, own_file=with_, device=device, trained_on=trained_on, valid=valid, test=test, encoding=encoding,
        separator=separator, weights=weights,
    )  # fmt: skip
    opened.target_file = target_file
    figures, baselines = opened.evaluate_beside(data, split)
    say_notes(opened)
    if json:
        print_json({**figures, "baselines": baselines})
        return
    rows = {**baselines, opened.config.model: figures}
    measured = f"{data or opened.source_of(split)}: {figures['tokens']:,} {opened.task.UNIT}"
    print_figures(measured, rows, opened.task)
    if not baselines:
        why = "that has changed" if trained_on else "name it with --trained-on"
        print(f"No baselines: they are fitted on the training data of this run; {why}.")
