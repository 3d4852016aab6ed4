"""`unrolled generate`: let a saved run write."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.cli.asked import Device, RunPath
from unrolled.cli.options import Json, With, print_json, with_options
from unrolled.cli.streams import write_exact
from unrolled.core.errors import UsageError
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
        typer.Option("-o", "--out", help="Output file, for runs that do not write text (piano rolls, drawings)."),
    ] = None,
    with_: With = None,
    device: Device = None,
    json: Json = False,
    values: dict[str, Any] = {},  # noqa: B006
) -> None:
    """Generate with a saved run: text, printed token by token, a piano roll and a MIDI file, or drawings.

    Examples:

        unrolled generate runs/lstm-python-docs --prompt "The import statement" --temperature 0.8

        unrolled generate runs/gru-names --condition Italian -n 5

        unrolled generate runs/lstm-chorales --max-tokens 64 --out chorale

        unrolled generate runs/soft-window-letters --text hello --bias 1 --out hello.svg
    """
    from unrolled.runs.run import load

    opened = load(run, own_file=with_, device=device)
    text = sys.stdin.read() if prompt == "-" else prompt
    task, name = opened.task, opened.config.task
    if isinstance(task, MakesFiles):
        if out is None:
            raise UsageError(f"the task '{name}' writes files: name the output with --out NAME")
        _write_files(task, opened.do("generate", text, **values), out, json)
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
