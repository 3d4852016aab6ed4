"""`unrolled generate`: let a saved run write."""

from __future__ import annotations

import inspect
import sys
from typing import Annotated, Any

import typer

from unrolled.cli.options import Json, With, print_json, with_options
from unrolled.cli.streams import write_exact
from unrolled.core.errors import UsageError
from unrolled.decode.config import Sampling
from unrolled.runs.storage import atomic


@with_options({"sampling": Sampling})
def command(
    run: Annotated[str, typer.Argument(help="A run directory.")],
    prompt: Annotated[
        str, typer.Option(help="The text to go on from (`-`: standard input), or a file of another kind.")
    ] = "",
    max_tokens: Annotated[int, typer.Option(min=1, help="The most tokens to write.")] = 300,
    n: Annotated[int, typer.Option("-n", min=1, help="How many texts.")] = 1,
    best_of: Annotated[int | None, typer.Option(min=1, help="Sample this many, keep the n most probable.")] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Beam search of this width instead of sampling.")] = None,
    length_penalty: Annotated[float, typer.Option(help="Exponent of beam search's length penalty.")] = 0.0,
    stop: Annotated[str | None, typer.Option(help="End at this token (a character, or a word).")] = None,
    condition: Annotated[str | None, typer.Option(help="The class to start from, for runs with --condition.")] = None,
    out: Annotated[
        str | None, typer.Option("-o", "--out", help="Where to, for what is not text (piano rolls).")
    ] = None,
    with_: With = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 or mps.")] = None,
    json: Json = False,
    values: dict[str, Any] = {},  # noqa: B006
) -> None:
    """Write with a saved run: text token by token as it is made, or a piano roll and a MIDI file.

    Examples:

        unrolled generate runs/lstm-python-docs --prompt "The import statement" --temperature 0.8

        unrolled generate runs/gru-names --condition Italian -n 5

        unrolled generate runs/lstm-chorales --max-tokens 64 --out chorale
    """
    from unrolled.runs.run import load

    sampling = Sampling.parse({key.removeprefix("sampling."): value for key, value in values.items()})
    opened = load(run, own_file=with_, device=device)
    text = sys.stdin.read() if prompt == "-" else prompt
    asked = {"best_of_n": best_of, "beam": beam, "length_penalty": length_penalty or None, "stop": stop,
             "condition": condition}  # fmt: skip
    options: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    for name in options.keys() - inspect.signature(opened.generate).parameters.keys():
        raise UsageError(f"--{name.removesuffix('_n').replace('_', '-')} is not for the task '{opened.config.task}'")
    options |= {"sampling": sampling, "max_tokens": max_tokens}
    if hasattr(opened.task, "files_of"):
        _write_files(opened, text, out, options | {"n": n}, json)
        return
    if out is not None:
        raise UsageError(f"--out is not for the task '{opened.config.task}', whose text goes to standard output")
    if n == 1 and best_of is None and beam is None and not json:
        write_exact(text)
        for piece in opened.stream(text, **options):
            write_exact(piece)
            sys.stdout.flush()
        write_exact("\n")
        return
    made = opened.generate(text, n=n, **options)
    if json:
        print_json([item._asdict() for item in made])
        return
    for item in made:
        write_exact(f"{text}{item.text}\n    log P = {item.logp:.2f}\n")


def _write_files(opened: Any, prompt: str, out: str | None, options: dict[str, Any], json: bool) -> None:
    """What is not text goes to files; standard output has their names."""
    if out is None:
        raise UsageError(f"the task '{opened.config.task}' writes files: say where with --out NAME")
    made = opened.generate(prompt, **options)
    files = opened.task.files_of(made, out)
    for path, content in files.items():
        atomic.make_directory(path.parent)
        atomic.write_bytes(path, content)
    if json:
        print_json({"files": [str(path) for path in files], "logp": [item.logp for item in made]})
    else:
        print(*files, sep="\n")
