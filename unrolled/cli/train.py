"""`unrolled train`: data in, a run directory out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from unrolled.cli.options import Json, Source, Test, Valid, With, groups_of, print_json, require_names, with_options
from unrolled.core.config import parse_assignments
from unrolled.core.errors import UnrolledError
from unrolled.runs.config import RunConfig
from unrolled.training.signals import stop_at_once

TASK = "[default: the task of --from, or guessed from the data]"
MODEL = "[default: the model of --from, or one that fits the task]"


@with_options(groups_of(RunConfig))
def command(
    data: Source = None,
    valid: Valid = None,
    test: Test = None,
    task: Annotated[str | None, typer.Option(help=f"What to learn; `unrolled tasks` lists the tasks. {TASK}")] = None,
    model: Annotated[
        str | None, typer.Option(help=f"The model to train; `unrolled models` lists the models. {MODEL}")
    ] = None,
    encoder: Annotated[str | None, typer.Option(help="With --model encdec: the model that reads the source.")] = None,
    decoder: Annotated[str | None, typer.Option(help="With --model encdec: the model that writes the target.")] = None,
    out: Annotated[str | None, typer.Option("-o", "--out", help="Run directory. [default: runs/MODEL-DATA]")] = None,
    set_: Annotated[list[str], typer.Option("--set", help="Any setting as key=value.")] = [],  # noqa: B006
    recipe: Annotated[
        str | None, typer.Option(help="A TOML file of settings; options on the command line take precedence.")
    ] = None,
    with_: With = None,
    resume: Annotated[str | None, typer.Option(help="Resume an interrupted run.")] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed of initial weights, example order and noise.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 or mps.")] = None,
    threads: Annotated[int | None, typer.Option(help="Number of CPU threads, of each process.")] = None,
    processes: Annotated[
        int | None, typer.Option(help="Number of processes that train the run together, each on its rows of a batch.")
    ] = None,
    json: Json = False,
    values: dict[str, Any] = {},  # noqa: B006
) -> None:
    """Train a model and save it as a run directory.

    All settings of the task and of the model are options too, such as `--readout mean --d-state 128`:
    `unrolled train --task classify --model lstm --help` lists them.

    Examples:

        unrolled train builtin:python-docs --model lstm --budget 2m

        unrolled train pairs.tsv

        unrolled train names.csv --column name --condition language --model gru --steps 2000 --d-state 128

        unrolled train more.txt --from runs/lstm-python-docs --freeze embedding
    """
    require_names(task, [model, encoder, decoder], with_)
    given = {"seed": seed, "device": device, "threads": threads, "model.encoder": encoder, "model.decoder": decoder}
    given |= {"processes": processes}
    settings = values | {key: value for key, value in given.items() if value is not None} | parse_assignments(set_)
    with stop_at_once():
        from unrolled.training.api import train
        from unrolled.training.processes import launched
        from unrolled.training.progress import for_terminal

        run = train(
            data, task, model, out=out, settings=settings, recipe=recipe, own_file=with_, resume=resume,
            progress=for_terminal(), valid=valid, test=test,
        )  # fmt: skip
        if (found := launched()) is not None and found.rank:
            return  # the first process tells
        _write_report(run.path)
        if json:
            print_json({"run": str(run.path), **run.result})
            return
        from unrolled.cli.table import print_result
        from unrolled.runs.trust import opening

        with opening(run.path):  # a run that was finished before may be anybody's
            print_result(run)


def _write_report(path: Path) -> None:
    """A page that cannot be written is no reason to lose a finished run over it."""
    from unrolled.report.page import write_report

    try:
        write_report([path])
    except UnrolledError as error:
        print(f"unrolled: no report was written: {error}", file=sys.stderr)
