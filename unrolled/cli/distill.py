"""`unrolled distill`: a slow teacher, a student that generates in one pass."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from unrolled.cli.asked import RunPath
from unrolled.cli.options import Json, Source, groups_of, print_json, with_options
from unrolled.core.config import parse_assignments
from unrolled.runs.config import RunConfig
from unrolled.training.signals import stop_at_once


@with_options(groups_of(RunConfig, without=("data", "files", "start")))
def command(
    run: RunPath,
    data: Source = None,
    model: Annotated[str | None, typer.Option(help="The model of each flow. [default: wavenet]")] = None,
    out: Annotated[str | None, typer.Option("-o", "--out", help="Run directory. [default: runs/MODEL-DATA]")] = None,
    set_: Annotated[list[str], typer.Option("--set", help="Any setting as key=value.")] = [],  # noqa: B006
    seed: Annotated[int | None, typer.Option(help="Random seed of initial weights, example order and noise.")] = None,
    json: Json = False,
    values: dict[str, Any] = {},  # noqa: B006
) -> None:
    """Distill a run of next-sample into flows that generate all samples of a recording in one pass.

    The teacher must have been trained with `--output logistic-mixture`; the student learns from its probabilities and
    from the power of each frequency in the data, which is named again. It is a run like others: `generate` writes it.

    Examples:

        unrolled distill runs/wavenet-voices recordings --budget 30m -o runs/flow-voices

        unrolled distill runs/wavenet-voices recordings --set task.flows=2 --set task.contrast=0.3
    """
    given = {} if seed is None else {"seed": seed}
    settings = values | given | parse_assignments(set_)
    with stop_at_once():
        from unrolled.report.page import write_report
        from unrolled.training.distilling import distill
        from unrolled.training.progress import for_terminal

        made = distill(run, data, model, out, settings=settings, progress=for_terminal())
        write_report([made.path])
        if json:
            print_json({"run": str(made.path), **made.result})
            return
        from unrolled.cli.table import print_result

        print_result(made)
