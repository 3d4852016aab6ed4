"""`unrolled demo`: what this is good at, in five minutes."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from unrolled.core.errors import CannotWrite, Interrupted, UnrolledError, UsageError
from unrolled.core.front import invocation
from unrolled.runs.values import seconds
from unrolled.training.signals import stop_at_once

LEAST = 60.0  # seconds of a whole tour


def command(
    budget: Annotated[str, typer.Option(help="Time for the whole tour, such as 5m; at least 1m.")] = "5m",
    steps: Annotated[
        int | None, typer.Option(min=1, help="Optimiser steps of each run, instead of a time budget.")
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the report in the browser at the end.")] = False,
) -> None:
    """Take a tour of four small comparisons on built-in data: a series, strings, a memory, and text.

    Each part compares models with baselines and shows what the selected model does. Everything is saved in
    comparisons/demo. Ctrl-C saves the tour, and the same command resumes it.

    Examples:

        unrolled demo

        unrolled demo --budget 3m --open
    """
    started = time.monotonic()  # what is imported now takes a while, and is part of the budget
    until = started + _checked(budget)
    with stop_at_once():
        from unrolled.cli.table import print_comparison
        from unrolled.comparison import tour
        from unrolled.comparison.view import for_terminal
        from unrolled.pictures.screen import Screen

        screen = Screen(file=sys.stdout, highlight=False, soft_wrap=True)
        folder, failed = tour.folder_for(tour.PARTS), None
        screen.print(_begun(folder, tour.PLACE))
        try:
            for number, part in enumerate(tour.PARTS, 1):
                screen.print(f"\nPart {number} of {len(tour.PARTS)}. {part.title}", style="bold")
                left = until - time.monotonic()
                limit = {"steps": steps} if steps else {"time": tour.seconds_for(part, folder, tour.PARTS, left)}
                try:
                    found = tour.done(part, folder, limit, for_terminal())
                    print_comparison(found.path, dict(found.table), sys.stdout)
                    screen.print(f"\n{tour.outcome(found.table)}\n", style="bold")
                    for example in part.examples(found.best):
                        screen.print(example)
                except (Interrupted, CannotWrite):
                    raise
                except UnrolledError as error:  # the others are worth their time all the same
                    failed = error
                    screen.print(f"This part has failed: {error}")
            report = tour.report(folder, tour.PARTS)
        except (Interrupted, KeyboardInterrupt):
            raise Interrupted(f"stopped and saved; resume with: {invocation('demo', {})}") from None
    if report is not None:
        screen.print(f"\nThe tour took {time.monotonic() - started:.0f} s. All of its tables and plots: {report}")
        screen.print(f"Play with its models in the browser: unrolled show {folder}")
        if open_:
            import webbrowser

            webbrowser.open_new_tab(report.absolute().as_uri())
    if failed is not None:
        raise failed


def _checked(budget: str) -> float:
    try:
        found = float(seconds(budget))
    except ValueError as error:
        raise UsageError(f"invalid value --budget = {budget}: {error}") from None
    if found < LEAST:
        raise UsageError(f"invalid value --budget = {budget}: expected at least 1m, because there are four comparisons")
    return found


def _begun(folder: Path, usual: Path) -> str:
    """Where the tour is, and why there."""
    if folder.exists():
        return f"{folder} holds a tour that was stopped: it is resumed."
    if folder != usual:
        return f"{usual} holds a finished tour: a new one goes to {folder}."
    return f"The tour is saved in {folder}; Ctrl-C stops it, and the same command resumes it."
