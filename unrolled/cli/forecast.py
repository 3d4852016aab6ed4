"""`unrolled forecast`: the next steps of series, with intervals."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.cli.asked import Device, Encoding, RunPath, Separator, Weights, print_results, say_notes
from unrolled.cli.options import Json, With, with_options
from unrolled.cli.rows import Out, write
from unrolled.core.errors import UsageError
from unrolled.verbs.forecast import VERB, picture

if TYPE_CHECKING:
    from unrolled.core.task import Given
    from unrolled.core.verb import Result
    from unrolled.pictures.kinds import Plot
    from unrolled.runs.run import Run

PERCENT = (50, 80, 95)
DRAWN = 3  # series that are drawn in a terminal
WIDEST = 110  # letters of a drawing
FEWEST_ZEROS = 5  # behind the point, of numbers that are written with a power of ten


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
    weights: Weights = None,
    encoding: Encoding = None,
    separator: Separator = None,
    out: Out = None,
    plot: Annotated[
        str | None, typer.Option(help="Draw the forecast of the first series into this file: .png or .svg.")
    ] = None,
    json: Json = False,
    values: dict[str, Any] = {},  # noqa: B006
) -> None:
    """Forecast the next steps of each series: the median and 50, 80 and 95 % intervals.

    Draws and lists them in a terminal; into a pipe goes the time, the median and the ends of the 80 % interval,
    separated by tabs. -o forecast.csv has all of them, one row for each time. Where the run has known-future
    covariates, the history holds their rows, with an empty target.

    Examples:

        unrolled forecast runs/gru-sales --horizon 12

        unrolled forecast runs/gru-sales --history newer.csv -o forecast.csv --plot forecast.png
    """
    from unrolled.runs.run import load

    opened = load(run, own_file=with_, device=device, encoding=encoding, separator=separator, weights=weights)
    found = opened.each("forecast", history, values)
    watched = sys.stdout.isatty() and not json
    if plot is not None or watched:
        found = _drawn(found, opened, plot, watched)
    if out is not None:
        write(out, history or "-", found, opened.task, rows=VERB.rows)
    elif watched:
        _show(found, opened)
    else:
        print_results(found, None if json else VERB.writers["text"])
    say_notes(opened)


def _drawn(found: Iterator[tuple[Given, Result]], opened: Run, plot: str | None, watched: bool) -> Iterator[Any]:
    """The same, with the first series drawn into a file, and some on the screen."""
    from unrolled.pictures.blocks import plotted
    from unrolled.pictures.screen import Screen

    if plot is not None and Path(plot).suffix not in (".png", ".svg"):
        raise UsageError(f"--plot {plot}: unknown format; the file name must end in .png or .svg")
    for k, (given, result) in enumerate(found):
        if k < DRAWN and (watched or k == 0):
            drawing = picture(opened.task, given, result)  # type: ignore[arg-type]
            if plot is not None and k == 0:
                _save(Path(plot), drawing)
            if watched:
                screen = Screen(file=sys.stdout, highlight=False)
                screen.print(plotted(drawing, min(screen.width, WIDEST)), soft_wrap=True)
        yield given, result


def _show(found: Iterator[tuple[Given, Result]], opened: Run) -> None:
    """Each series as a table, for the eye."""
    from rich import box
    from rich.table import Table

    from unrolled.pictures.screen import Screen

    screen = Screen(file=sys.stdout, highlight=False)
    for _, result in found:
        table = Table(box=box.SIMPLE_HEAD, title=result["series"] or None, title_justify="left")
        table.add_column("time")
        for name in ("median", *(f"{percent} % interval" for percent in PERCENT)):
            table.add_column(name, justify="right")
        form = _form(result["forecast"])
        for row in VERB.rows(result):  # type: ignore[misc]
            ends = (f"{_number(row[f'low_{p}'], form)} to {_number(row[f'high_{p}'], form)}" for p in PERCENT)
            table.add_row(row["time"], _number(row["forecast"], form), *ends)
        screen.print(table)
    screen.print(_judged(opened), highlight=False)


def _form(values: list[Any]) -> str:
    """How numbers are written so that they have about five digits.

    >>> _form([123.4, 0.01]), _form([[2e9, 1.0]]), _form([3e-9])
    ('.2f', '.0f', '.4e')
    """
    numbers = [abs(v) for each in values for v in (each if isinstance(each, list) else [each]) if v]
    size = math.floor(math.log10(max(numbers, default=1.0)))
    return f".{max(4 - size, 0)}f" if size >= -FEWEST_ZEROS else ".4e"


def _number(value: Any, form: str) -> str:
    """Of several channels, side by side."""
    if isinstance(value, list):
        return ", ".join(_number(each, form) for each in value)
    return "" if value is None else format(value, form)


def _save(path: Path, drawing: Plot) -> None:
    from unrolled.pictures.draw import png, svg
    from unrolled.runs.storage import atomic

    if not path.absolute().parent.is_dir():
        raise UsageError(f"--plot {path}: there is no folder '{path.parent}'; create it first")
    atomic.write_bytes(path, png(drawing) if path.suffix == ".png" else svg(drawing).encode())


def _judged(opened: Run) -> str:
    """What forecasts of test data were worth, beside the best baseline."""
    result = opened.result
    test, others = result.get("test", {}), result.get("baselines", {})
    found = [(each["test"]["mase"], name) for name, each in others.items() if "mase" in each.get("test", {})]
    if "mase" not in test:
        return "There are no metrics of test data."
    beside = f" ({min(found)[1]}: {min(found)[0]:.3g})" if found else ""
    inside = f"80 % intervals contain {test['coverage_80']:.0%} of the values"
    return f"On test data: MASE {test['mase']:.3g}{beside}; {inside}."
