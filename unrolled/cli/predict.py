"""`unrolled predict`: the one verb for every task's predictions."""

from __future__ import annotations

import json as jsons
import sys

from unrolled.cli.examples import Condition, Data, Device, Run, answers
from unrolled.cli.live import Live, answer_live
from unrolled.cli.options import With
from unrolled.cli.rows import Out, write


def command(
    run: Run,
    data: Data,
    condition: Condition = None,
    with_: With = None,
    device: Device = None,
    live: Live = False,
    out: Out = None,
) -> None:
    """Predict for each example, in order: one JSON line each on standard output.

    For next-token runs: the most probable tokens after each line. With -o out.csv the rows of a table are written as
    they are, with the prediction and its probability in columns behind them.

    Examples:

        unrolled predict runs/lstm-python-docs lines.txt

        echo "The impor" | unrolled predict runs/lstm-python-docs -

        unrolled predict runs/dan-reviews reviews.csv -o answered.csv

        sensor | unrolled predict runs/gru-sensor - --live
    """
    if live:
        answer_live(run, data, with_, device)
        return
    said = answers(run, data, "predict", condition, with_, device)
    if out is not None:
        write(out, data, said)
        return
    for line in said:
        sys.stdout.write(jsons.dumps(line, ensure_ascii=False) + "\n")
