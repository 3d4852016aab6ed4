"""`unrolled serve`: saved runs over HTTP."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from unrolled.cli.asked import Weights
from unrolled.cli.options import join, with_options
from unrolled.core import discover
from unrolled.core.errors import UsageError
from unrolled.core.opening import read_text
from unrolled.serve.limits import Limits

Withs = Annotated[
    list[str] | None, typer.Option("--with", help="Your own Python file that defines a run's model; may be repeated.")
]


@with_options({"": Limits})
def command(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="run_or_comparison_or_folder", help="Run directories, comparisons, or folders of them."),
    ] = None,
    train: Annotated[
        str | None,
        typer.Option(
            metavar="folder", help="Let visitors of the page upload data and compare models on it, in this folder."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but this machine's own needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any that is free.")] = 8000,
    token_file: Annotated[
        str | None, typer.Option(help="File with the token that clients must send. [default: $UNROLLED_TOKEN]")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A host name that the server is known by; may be repeated.")
    ] = None,
    with_: Withs = None,
    weights: Weights = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Write no log.")] = False,
    values: dict[str, Any] = {},  # noqa: B006
) -> None:
    """Serve saved runs over HTTP: the OpenAI API for text, and an endpoint for everything that a run can do.

    Runs are loaded when they are first asked for. On the page at / runs can be tried side by side, and
    with --train models compared on data that is dropped there; /addresses lists all addresses. Needs the extra `serve`.

    Examples:

        unrolled serve runs/lstm-python-docs

        unrolled serve runs comparisons/demo --port 9000 --seconds 20

        unrolled serve --train my-project

        curl localhost:8000/v1/completions -H 'Content-Type: application/json' \\
            -d '{"model": "lstm-python-docs", "prompt": "The import", "max_tokens": 50}'
    """
    from unrolled.serve import log, start

    if not paths and train is None:
        raise UsageError("nothing to serve: name runs, comparisons or folders of them, or a folder with --train")
    log.silence(quiet)
    limits = Limits.parse(values)
    token = os.environ.get("UNROLLED_TOKEN") or None
    if token_file is not None:
        token = read_text(token_file, 10_000).strip()
        if not token:
            raise UsageError(f"{token_file}: there is no token in it")
    own_file = join(with_ or [], discover.models)
    app = start.make(paths or [], limits, host, token, allow_host or (), own_file, train=train, weights=weights)
    start.serve(app, limits, host, port)
