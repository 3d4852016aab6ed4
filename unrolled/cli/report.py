"""`unrolled report`: runs and comparisons as one page."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    paths: Annotated[list[str], typer.Argument(metavar="run_or_comparison", help="Run directories or comparisons.")],
    out: Annotated[
        str | None,
        typer.Option(
            "-o", "--out", help="Output file. [default: report.html, in the run directory if only one is named]"
        ),
    ] = None,
) -> None:
    """Write a self-contained HTML report of runs and comparisons, and print its path.

    Examples:

        unrolled report runs/lstm-python-docs

        unrolled report runs/lstm-python-docs runs/gru-python-docs -o page.html
    """
    from unrolled.report.page import write_report

    print(write_report(paths, out))
