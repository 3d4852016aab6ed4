"""`unrolled report`: runs and comparisons as one page."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    paths: Annotated[list[str], typer.Argument(metavar="RUN_OR_COMPARISON...", help="Run directories, comparisons.")],
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", help="The page; default: report.html in the directory if one is named, else here."),
    ] = None,
) -> None:
    """Write runs and comparisons as one HTML page that needs nothing else, and print where it is.

    Examples:

        unrolled report runs/lstm-python-docs

        unrolled report runs/lstm-python-docs runs/gru-python-docs -o page.html
    """
    from unrolled.report.page import write_report

    print(write_report(paths, out))
