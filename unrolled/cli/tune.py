"""`unrolled tune`: which settings of a model are good for this data?"""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any

import typer

from unrolled.cli.options import Json, Source, Test, Valid, With, groups_of, print_json, require_names, with_options
from unrolled.core.config import parse_assignments
from unrolled.runs.config import RunConfig
from unrolled.training.signals import stop_at_once
from unrolled.tuning.config import TuneConfig

OWN = ("budget", "start", "choice")  # groups that a search decides for its trials


@with_options({"": TuneConfig} | groups_of(RunConfig, OWN))
def command(
    data: Source = None,
    valid: Valid = None,
    test: Test = None,
    task: Annotated[
        str | None,
        typer.Option(help="What to learn; `unrolled tasks` lists the tasks. [default: guessed from the data]"),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="The model; `unrolled models` lists the models. [default: one that fits the task]"),
    ] = None,
    out: Annotated[str | None, typer.Option("-o", "--out", help="Output directory. [default: tuning/DATA]")] = None,
    set_: Annotated[list[str], typer.Option("--set", help="Any setting as key=value, for all trials.")] = [],  # noqa: B006
    with_: With = None,
    resume: Annotated[str | None, typer.Option(help="Resume an interrupted search.")] = None,
    engine: Annotated[
        str, typer.Option(help="Where trials are done: processes, ray, or ray://HOST:PORT.", metavar="<engine>")
    ] = "processes",
    json: Json = False,
    values: dict[str, Any] = {},  # noqa: B006
) -> None:
    """Search for good settings of a model, by its scores on validation data, and save the best run.

    Settings that you give are not searched. Trials that are behind are stopped early. The directory opens as the best
    run; its report shows which settings mattered. Needs the extra `tune`.

    Examples:

        unrolled tune poems.txt --model gru --budget 30m

        unrolled tune names.csv --column name --trials 40 --steps 500 --search lr,d_state,dropout

        unrolled tune poems.txt --model transformer --search "lr=0.0003..0.03,position=rotary|learned"
    """
    require_names(task, [model], with_)
    started = time.monotonic()
    settings = values | parse_assignments(set_)
    with stop_at_once():
        from unrolled.comparison.view import for_terminal
        from unrolled.tuning.api import tune

        found = tune(
            data, task, model, out=out, settings=settings, own_file=with_, resume=resume, view=for_terminal(),
            started=started, valid=valid, test=test, engine=engine,
        )  # fmt: skip
        if json:
            print_json({"search": str(found.path), **found.table})
            return
        from unrolled.cli.trials import print_search

        print_search(found.path, dict(found.table), sys.stdout)
