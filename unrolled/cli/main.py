"""The command `unrolled`: one file of this folder is one command. Nothing here imports torch."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from typing import Annotated

import typer

import unrolled
from unrolled.core.discover import file_name
from unrolled.core.errors import UnrolledError

app = typer.Typer(
    name="unrolled",
    help="Sequence models of forty years on your own data: train, evaluate, generate, look inside.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=True,
)


def _version(asked: bool) -> None:
    if asked:
        print(f"unrolled {unrolled.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _add_commands(words: list[str]) -> None:
    """Load the command that was asked for; all of them only for the list in the help."""
    import unrolled.cli as folder

    names = [found.name for found in pkgutil.iter_modules(folder.__path__)]
    asked = [name for name in names if words and words[0] == file_name(name)]
    if words != ["--version"]:
        for name in asked or names:
            module = importlib.import_module(f"{folder.__name__}.{name}")
            if hasattr(module, "command"):
                app.command(file_name(name))(module.command)


def main() -> None:
    """Run a command; every failure a user can cause is one sentence and an exit code."""
    _add_commands(sys.argv[1:])
    try:
        app()
    except UnrolledError as error:
        print(f"unrolled: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read us has gone: leave quietly
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if os.environ.get("UNROLLED_TRACEBACK"):
            raise
        print(
            f"unrolled: a mistake of ours: {type(error).__name__}: {error} (set UNROLLED_TRACEBACK=1 to see where)",
            file=sys.stderr,
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
