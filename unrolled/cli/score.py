"""`unrolled score`: how probable does a saved run find each line?"""

from __future__ import annotations

import json as jsons
import sys

from unrolled.cli.examples import Condition, Data, Device, Run, answers
from unrolled.cli.options import Json, With


def command(
    run: Run, data: Data, condition: Condition = None, with_: With = None, device: Device = None, json: Json = False
) -> None:
    """Log-probability of each example, in order.

    Prints log P in nats, the number of tokens and the text, separated by tabs; JSON lines with --json.

    Examples:

        unrolled score runs/lstm-python-docs lines.txt

        echo "import sys" | unrolled score runs/lstm-python-docs - --json
    """
    for line in answers(run, data, "score", condition, with_, device):
        if json:
            sys.stdout.write(jsons.dumps(line, ensure_ascii=False) + "\n")
        else:
            sys.stdout.write(f"{line['logp']:.4f}\t{line['tokens']}\t{line['text']}\n")
