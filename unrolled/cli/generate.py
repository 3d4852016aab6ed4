"""`unrolled generate`: let a saved run write."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.cli.asked import Device, RunPath, Weights, say_notes
from unrolled.cli.options import Json, With, print_json, with_options
from unrolled.cli.streams import write_exact
from unrolled.core.errors import UsageError
from unrolled.core.progress import reported
from unrolled.core.verb import MakesFiles
from unrolled.runs.storage import atomic
from unrolled.verbs.generate import VERB

if TYPE_CHECKING:
    from unrolled.core.verb import Result


@with_options({"": VERB.request})
def command(
    run: RunPath,
    prompt: Annotated[
        str,
        typer.Option(help="The text to continue (`-` for standard input), or a file if the run does not read text."),
    ] = "",
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", help="Output file, for runs that write no text (piano rolls, drawings, sound)."),
    ] = None,
    with_: With = None,
    device: Device = None,
    weights: Weights = None,
    json: Json = False,
    values: dict[str, Any] = {},  # noqa: B006
) -> None:
    """Generate with a saved run: text, printed token by token, a piano roll and a MIDI file, drawings, or sound.

    Examples:

        unrolled generate runs/lstm-python-docs --prompt "The import statement" --temperature 0.8

        unrolled generate runs/gru-names --condition Italian -n 5

        unrolled generate runs/lstm-chorales --max-tokens 64 --out chorale

        unrolled generate runs/soft-window-letters --text hello --bias 1 --out hello.svg

        unrolled generate runs/wavenet-digits --seconds 2 --condition digit=7 --out seven.wav
    """
    from unrolled.runs.run import load

    opened = load(run, own_file=with_, device=device, weights=weights)
    say_notes(opened)
    text = sys.stdin.read() if prompt == "-" else prompt
    task, name = opened.task, opened.config.task
    if isinstance(task, MakesFiles):
        if out is None:
            raise UsageError(f"the task '{name}' writes files: name the output with --out NAME")
        began = time.perf_counter()
        with shown_progress():
            found = opened.do("generate", text, **values)
        took = time.perf_counter() - began
        _write_files(task, found, out, json)
        if made_seconds := sum(item.get("seconds", 0.0) for item in found):
            speed = f"{made_seconds / took:.3g} x real time"
            print(f"{made_seconds:.4g} s generated in {took:.3g} s: {speed}", file=sys.stderr)
        return
    if out is not None:
        raise UsageError(f"--out does not apply to the task '{name}', which writes text to standard output")
    if not (json or {"n", "best_of", "beam"} & values.keys()):
        pieces = opened.stream(text, **values)
        write_exact(text)
        for piece in pieces:
            write_exact(piece)
            sys.stdout.flush()
        write_exact("\n")
        return
    made = opened.generate(text, **values)
    if json:
        print_json(made)
        return
    for item in made:
        write_exact(f"{text}{item['text']}\n    log P = {item['logp']:.2f}\n")


@contextmanager
def shown_progress() -> Iterator[None]:
    """A block whose work has a bar on the terminal; elsewhere nothing is shown."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from unrolled.pictures.screen import Screen

    columns = (TextColumn("generating"), BarColumn(bar_width=24), TextColumn("{task.percentage:>3.0f}%"))
    with Progress(*columns, TimeRemainingColumn(), console=Screen(stderr=True), transient=True) as bar:
        job = bar.add_task("generating", total=None)
        with reported(lambda done, of: bar.update(job, completed=done, total=of)):
            yield


def _write_files(task: MakesFiles, made: list[Result], out: str, json: bool) -> None:
    """What is not text goes to files; standard output has their names."""
    files = task.files_of(made, out)
    for path, content in files.items():
        atomic.make_directory(path.parent)
        atomic.write_bytes(path, content)
    if json:
        print_json({"files": [str(path) for path in files], "logp": [item["logp"] for item in made]})
    else:
        print(*files, sep="\n")
