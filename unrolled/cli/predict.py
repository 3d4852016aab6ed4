"""`unrolled predict`: the one verb for every task's predictions."""

from __future__ import annotations

import json as jsons
import sys

from unrolled.cli.examples import Condition, Data, Device, Run, answers
from unrolled.cli.options import With


def command(run: Run, data: Data, condition: Condition = None, with_: With = None, device: Device = None) -> None:
    """Predict for each example, in order: one JSON line each on standard output.

    For next-token runs: the most probable tokens after each line.

    Examples:

        unrolled predict runs/lstm-python-docs lines.txt

        echo "The impor" | unrolled predict runs/lstm-python-docs -
    """
    for line in answers(run, data, "predict", condition, with_, device):
        sys.stdout.write(jsons.dumps(line, ensure_ascii=False) + "\n")
