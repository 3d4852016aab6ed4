"""`unrolled embed`: the vectors of a saved run as features for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unrolled.cli.asked import Data, Device, Encoding, RunPath, Separator, print_results, say_notes
from unrolled.cli.options import With, with_options
from unrolled.cli.rows import Out, write
from unrolled.verbs.embed import VERB


@with_options({"": VERB.request})
def command(
    run: RunPath,
    data: Data,
    with_: With = None,
    device: Device = None,
    encoding: Encoding = None,
    separator: Separator = None,
    out: Out = None,
    values: dict[str, Any] = {},  # noqa: B006
) -> None:
    """Make vectors of the inputs, in order: features that other programs can learn from.

    With -o features.npz they are the array `vectors` [n, D]; with --pool none, [N, D] for all positions after each
    other, with `offsets` [n + 1] and the names of the positions, `tokens` [N]. Otherwise JSON lines.

    Examples:

        unrolled embed runs/bert-text reviews.csv -o features.npz

        unrolled embed runs/bert-text lines.txt --pool none --layer 2 -o tokens.npz
    """
    from unrolled.data.files.file_form import files_as
    from unrolled.runs.embedding import npz_bytes
    from unrolled.runs.run import load
    from unrolled.runs.storage import atomic

    opened = load(run, own_file=with_, device=device, encoding=encoding, separator=separator)
    found = opened.each("embed", data, values)
    if out is None:
        print_results(found, None)
    elif Path(out).suffix == ".npz":
        atomic.write_bytes(Path(out), npz_bytes([line for _, line in found]))
        print(out)
    else:
        with files_as(opened.form):
            write(out, data, found, opened.task)
    say_notes(opened)
