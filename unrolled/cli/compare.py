"""`unrolled compare`: which model should I use on this data, and what does each give me?"""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any

import typer

from unrolled.cli.options import Json, Source, Test, Valid, With, groups_of, print_json, require_names, with_options
from unrolled.comparison.config import CompareConfig
from unrolled.core.config import parse_assignments
from unrolled.runs.config import RunConfig
from unrolled.training.signals import stop_at_once

OWN = ("budget", "start")  # groups that a comparison decides for its runs


@with_options({"": CompareConfig} | groups_of(RunConfig, OWN))
def command(
    data: Source = None,
    valid: Valid = None,
    test: Test = None,
    task: Annotated[
        str | None,
        typer.Option(help="What to learn; `unrolled tasks` lists the tasks. [default: guessed from the data]"),
    ] = None,
    out: Annotated[
        str | None, typer.Option("-o", "--out", help="Output directory. [default: comparisons/DATA]")
    ] = None,
    set_: Annotated[list[str], typer.Option("--set", help="Any setting as key=value, for all runs.")] = [],  # noqa: B006
    with_: With = None,
    resume: Annotated[str | None, typer.Option(help="Resume an interrupted comparison.")] = None,
    plan_only: Annotated[
        bool, typer.Option("--plan-only", help="Decide everything and train nothing: the runs are for --join.")
    ] = False,
    join: Annotated[
        str | None,
        typer.Option(help="Take runs of a planned comparison until none is left; any number of processes may."),
    ] = None,
    collect: Annotated[
        str | None, typer.Option(help="Make the table and the report of a planned comparison, as far as it is.")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="Where runs are done: processes, ray, or ray://HOST:PORT.", metavar="<engine>")
    ] = "processes",
    json: Json = False,
    values: dict[str, Any] = {},  # noqa: B006
) -> None:
    """Train several models on the same data under equal conditions and show which is best, and whether the difference
    is significant.

    All settings of the task are options too, such as `--readout mean`, and those of a model with its name as prefix,
    `--lstm.d-state 64`: `unrolled compare --task classify --models lstm,gru --help` lists them.

    Examples:

        unrolled compare builtin:python-docs --budget 5m

        unrolled compare poems.txt --models lstm,gru,transformer --match params --seeds 3 --budget 1h

        unrolled compare names.csv --column name --steps 500 --fractions 0.1,1 --json
    """
    require_names(task, str(values.get("models") or "").split(","), with_)
    started = time.monotonic()  # what is imported now takes a while, and is part of the budget
    settings = values | parse_assignments(set_)
    with stop_at_once():
        from unrolled.comparison.api import compare
        from unrolled.comparison.view import for_terminal

        found = compare(
            data, task, out=out, settings=settings, own_file=with_, resume=resume, view=for_terminal(), started=started,
            valid=valid, test=test, plan_only=plan_only, join=join, collect=collect, engine=engine,
        )  # fmt: skip
        if plan_only or join is not None:
            return
        if json:
            print_json({"comparison": str(found.path), **found.table})
            return
        from unrolled.cli.table import print_comparison

        print_comparison(found.path, dict(found.table), sys.stdout)
