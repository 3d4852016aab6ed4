"""`unrolled predict RUN - --live`: a line in, a line out as soon as there is one, for streams that never end."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.cli.streams import json_words, write_exact
from unrolled.core.errors import UsageError
from unrolled.core.front import option

if TYPE_CHECKING:
    from unrolled.results import Tick
    from unrolled.runs.run import Run
    from unrolled.runs.session import Session

Live = Annotated[
    bool,
    typer.Option(
        "--live",
        help="Predict after each line as it arrives (the numbers of one step, a word or a frame); causal models only.",
    ),
]


def answer_live(opened: Run, data: str, request: dict[str, Any], json: bool) -> None:
    """Rows of a file or of standard input (`-`), one on each line; an empty line ends a series."""
    from unrolled.data.files.text_file import TextFile

    if odd := [name for name in request if name != "condition"]:
        raise UsageError(f"{option(odd[0])} cannot be used with --live, which predicts row by row as input arrives")
    session = opened.session(request.get("condition"))
    if session.grows:
        note = "each row takes longer than the one before, because this model attends to all previous rows"
        print(f"note: {note}", file=sys.stderr)
    for line in lines_of(session, sys.stdin if data == "-" else TextFile(data).lines(), json):
        write_exact(line + "\n")
        sys.stdout.flush()


def lines_of(session: Session, lines: Iterable[str], json: bool = False) -> Iterator[str]:
    """The results as they come; an empty line, which ends a series, stays one."""
    for number, line in enumerate(lines, start=1):
        row = session.flow.line(line.rstrip("\r\n"), f"line {number}")
        found = session.end() if row is None else session.push(row, f"line {number}")
        yield from (_line(each, json) for each in found)
        if row is None:
            yield ""
    yield from (_line(each, json) for each in session.end())


def _line(result: Tick, json: bool) -> str:
    """Numbers alone as they were given, everything else as JSON."""
    numbers = result.get("prediction")
    if json or len(result) > 1 or not isinstance(numbers, list):
        return json_words(result)
    return " ".join(f"{value:.6g}" for value in numbers)
