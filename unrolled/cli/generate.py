"""`unrolled generate`: let a saved run write."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from unrolled.cli.options import Json, With, print_json, with_options
from unrolled.decode.config import Sampling


@with_options({"sampling": Sampling})
def command(
    run: Annotated[str, typer.Argument(help="A run directory.")],
    prompt: Annotated[str, typer.Option(help="The text to go on from; `-` reads it from standard input.")] = "",
    max_tokens: Annotated[int, typer.Option(min=1, help="The most tokens to write.")] = 300,
    n: Annotated[int, typer.Option("-n", min=1, help="How many texts.")] = 1,
    best_of: Annotated[int | None, typer.Option(min=1, help="Sample this many, keep the n most probable.")] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Beam search of this width instead of sampling.")] = None,
    length_penalty: Annotated[float, typer.Option(help="Exponent of beam search's length penalty.")] = 0.0,
    stop: Annotated[str | None, typer.Option(help="End at this token (a character, or a word).")] = None,
    condition: Annotated[str | None, typer.Option(help="The class to start from, for runs with --condition.")] = None,
    with_: With = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 or mps.")] = None,
    json: Json = False,
    values: dict[str, Any] = {},  # noqa: B006
) -> None:
    """Write text with a saved run, token by token as it is made.

    Examples:

        unrolled generate runs/lstm-python-docs --prompt "The import statement" --temperature 0.8

        unrolled generate runs/gru-names --condition Italian -n 5
    """
    from unrolled.runs.run import load

    sampling = Sampling.parse({key.removeprefix("sampling."): value for key, value in values.items()})
    opened = load(run, own_file=with_, device=device)
    text = sys.stdin.read() if prompt == "-" else prompt
    common = {"max_tokens": max_tokens, "stop": stop, "condition": condition}
    if n == 1 and best_of is None and beam is None and not json:
        sys.stdout.write(text)
        for piece in opened.stream(text, sampling=sampling, **common):
            sys.stdout.write(piece)
            sys.stdout.flush()
        sys.stdout.write("\n")
        return
    made = opened.generate(
        text, n=n, best_of_n=best_of, beam=beam, length_penalty=length_penalty, sampling=sampling, **common
    )
    if json:
        print_json([item._asdict() for item in made])
        return
    for item in made:
        print(f"{text}{item.text}\n    log P = {item.logp:.2f}")
