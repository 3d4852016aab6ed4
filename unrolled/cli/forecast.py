"""`unrolled forecast`: the next steps of series, with intervals."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from unrolled.cli.asked import Device, RunPath, print_results
from unrolled.cli.options import Json, With, with_options
from unrolled.cli.rows import Out, write
from unrolled.verbs.forecast import VERB


@with_options({"": VERB.request})
def command(
    run: RunPath,
    history: Annotated[
        str | None,
        typer.Option(
            help="A table with the series to continue, with the columns of the training data. [default: the training "
            "series]"
        ),
    ] = None,
    with_: With = None,
    device: Device = None,
    out: Out = None,
    json: Json = False,
    values: dict[str, Any] = {},  # noqa: B006
) -> None:
    """Forecast the next steps of each series: the median and 50, 80 and 95 % intervals.

    Prints time, median and the ends of the 80 % interval, separated by tabs; -o forecast.csv has all of them, one row
    for each time. Where the run has known-future covariates, the history holds their rows, with an empty target.

    Examples:

        unrolled forecast runs/gru-sales --horizon 12

        unrolled forecast runs/gru-sales --history newer.csv -o forecast.csv
    """
    from unrolled.runs.run import load

    opened = load(run, own_file=with_, device=device)
    found = opened.each("forecast", history, values)
    if out is not None:
        write(out, history or "-", found, opened.task, rows=VERB.rows)
        return
    print_results(found, None if json else VERB.writers["text"])
