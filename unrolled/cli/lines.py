"""`unrolled predict RUN -` of a run that writes for a source: a line in, a line out, in order, as they come.

Lines are read in windows of at most 256, batched by length inside, so that memory is bounded and a person who types is
answered at once. Standard output has the texts, standard error a bar.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TextIO

from unrolled.core.finite import require_finite
from unrolled.decode.config import GREEDY


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


def answers(opened: Any, data: str, options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What the run writes for every example of the data, in order."""
    task, model = opened.task, opened.model
    search = task.search(model, **options)
    with bar_for(data, sys.stderr) as bar:
        for some in opened.examples(data):
            for example, line in zip(some, task.say(model, some, search, options.get("sampling") or GREEDY)):
                require_finite(line)
                yield line
                bar.advance(example.text)
            sys.stdout.flush()
