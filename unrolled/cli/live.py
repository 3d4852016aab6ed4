"""`unrolled predict RUN - --live`: a line in, a line out at once, for series that never end."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

Live = Annotated[
    bool, typer.Option("--live", help="Answer each line (the numbers of one step) at once; causal denoise runs.")
]


def answer_live(run: str, data: str, own_file: str | None, device: str | None) -> None:
    """Numbers of one step on each line of a file or of standard input (`-`), and of the answer on each line out."""
    from unrolled.core.errors import UsageError
    from unrolled.data.plain import TextFile
    from unrolled.runs.run import load

    opened = load(run, own_file=own_file, device=device)
    stream = getattr(opened.task, "stream_numbers", None)
    if stream is None:
        raise UsageError(f"a run of the task '{opened.config.task}' cannot answer live; those of denoise can")
    for line in stream(opened.model, sys.stdin if data == "-" else TextFile(data).lines()):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
