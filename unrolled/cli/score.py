"""`unrolled score`: how probable does a saved run find each line?"""

from __future__ import annotations

from unrolled.cli.examples import Condition, Data, Device, Run, answers
from unrolled.cli.options import Json, With
from unrolled.cli.streams import json_words, write_exact


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
            print(json_words(line))
        else:
            write_exact(f"{line['logp']:.4f}\t{line['tokens']}\t{line['text']}\n")
