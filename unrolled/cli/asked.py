"""What a verb finds for the examples of some data: a line in, a line out, in order, as they come.

Examples are read some at a time, so that memory is bounded and a person who types is answered at once. Standard output
has the results, standard error a bar where texts are written.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TextIO

import typer

from unrolled.cli.streams import json_words, write_exact
from unrolled.core.verb import Result

if TYPE_CHECKING:
    from unrolled.core.task import Given
    from unrolled.runs.run import Run

RunPath = Annotated[str, typer.Argument(help="A run directory, or a comparison (its selected model is used).")]
Data = Annotated[
    str, typer.Argument(help="A file with one example per line (or row), or `-` for standard input.", metavar="DATA")
]
Encoding = Annotated[str | None, typer.Option(help="Encoding of the file, such as cp1251. [default: recognised]")]
Separator = Annotated[
    str | None, typer.Option(help="What separates the columns of a table: one character, or tab. [default: found]")
]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 or mps.")]

Weights = Annotated[
    str | None,
    typer.Option(
        help="bf16 or int8: round the weights of the decoder to fewer bits, which native ticks read faster; the change "
        "of the loss is printed. [default: as they were trained]"
    ),
]


def say_notes(run: Run) -> None:
    """How a run and the files that were read were understood, on standard error."""
    for note in run.notes:
        print(f"note: {note}", file=sys.stderr)


def print_results(found: Iterable[tuple[Given, Result]], text: Callable[[Result], str] | None) -> None:
    """Each result on a line, as text or as JSON, which also has what identifies its input."""
    for given, line in found:
        write_exact((json_words({**given.names, **line}) if text is None else text(line)) + "\n")
        sys.stdout.flush()


def watched(data: str, found: Iterable[tuple[Given, Result]]) -> Iterator[tuple[Given, Result]]:
    """The same with a bar that moves on."""
    with bar_for(data, sys.stderr) as bar:
        for given, line in found:
            yield given, line
            bar.advance(given.value)


class Bar(Protocol):
    def advance(self, text: Any) -> None: ...


class Still:
    """Nobody watches."""

    def advance(self, text: Any) -> None: ...


class Moving:
    """Lines and bytes that are done, of all where that is known."""

    def __init__(self, to: TextIO, total: int | None) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        from unrolled.pictures.screen import Screen

        shown = TextColumn("{task.fields[lines]:,} lines")
        columns = [TextColumn("writing"), BarColumn(bar_width=24), shown, TimeRemainingColumn()]
        self.bar = Progress(*columns, console=Screen(file=to), transient=True)
        self.task = self.bar.add_task("writing", total=total, lines=0)
        self.lines = 0

    def advance(self, text: Any) -> None:
        self.lines += 1
        self.bar.update(self.task, advance=len(str(text).encode()) + 1, lines=self.lines)


@contextmanager
def bar_for(data: str, to: TextIO) -> Iterator[Bar]:
    """A bar where somebody watches."""
    if not to.isatty():
        yield Still()
        return
    moving = Moving(to, size_of(data))
    with moving.bar:
        yield moving


def size_of(data: str) -> int | None:
    """Bytes that will be read; None where that is not known (a pipe, a packed file)."""
    try:
        found = os.fstat(sys.stdin.fileno()) if data == "-" else Path(data).stat()
    except (OSError, ValueError):
        return None
    packed = Path(data).suffix in (".gz", ".bz2", ".xz", ".parquet")
    return found.st_size if stat.S_ISREG(found.st_mode) and not packed else None
