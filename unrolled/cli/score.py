"""`unrolled score`: how probable does a saved run find each line?"""

from __future__ import annotations

from typing import Any

from unrolled.cli.asked import Data, Device, Encoding, RunPath, Separator, Weights, print_results, say_notes
from unrolled.cli.options import Json, With, with_options
from unrolled.verbs.score import VERB


@with_options({"": VERB.request})
def command(
    run: RunPath,
    data: Data,
    with_: With = None,
    device: Device = None,
    weights: Weights = None,
    encoding: Encoding = None,
    separator: Separator = None,
    json: Json = False,
    values: dict[str, Any] = {},  # noqa: B006
) -> None:
    """Log-probability of each example, in order.

    Prints log P in nats, the number of tokens and the text, separated by tabs; JSON lines with --json.

    Examples:

        unrolled score runs/lstm-python-docs lines.txt

        echo "import sys" | unrolled score runs/lstm-python-docs - --json
    """
    from unrolled.runs.run import load

    opened = load(run, own_file=with_, device=device, encoding=encoding, separator=separator, weights=weights)
    print_results(opened.each("score", data, values), None if json else VERB.writers["text"])
    say_notes(opened)
