"""`unrolled show`: the page on the runs and comparisons of a folder, in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unrolled.core.errors import DataError

PLACES = ("runs", "comparisons")  # where runs go unless they are told to go elsewhere


def command(
    folder: Annotated[str, typer.Argument(help="A folder with runs/ and comparisons/, or one that holds such.")] = ".",
    train: Annotated[
        bool, typer.Option("--train", help="Data may be dropped on the page, and models compared on it.")
    ] = False,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any that is free.")] = 0,
) -> None:
    """Look at the runs and comparisons of a folder in the browser: try them side by side, look inside, take them away.

    The page is served on this machine alone. Needs the extra `serve`.

    Examples:

        unrolled show

        unrolled show --train

        unrolled show my-project --no-browser --port 8000
    """
    place = Path(folder)
    if not place.is_dir():
        raise DataError(f"{folder}: no such folder; name one that holds runs or comparisons")
    from unrolled.serve import log, start
    from unrolled.serve.limits import Limits

    log.silence(True)
    inner = [str(place / name) for name in PLACES]
    app = start.make([], Limits(), growing=[folder, *inner], train=folder if train else None)
    start.serve(app, Limits(), "127.0.0.1", port, _open if browser else str)


def _open(address: str) -> None:
    import webbrowser

    if not webbrowser.open_new_tab(address):
        print("No browser was found: open that address in one.", flush=True)
