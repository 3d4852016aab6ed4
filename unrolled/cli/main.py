"""The command `unrolled`: one file of this folder is one command. Nothing here imports torch."""

from __future__ import annotations

import ast
import importlib
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

import unrolled
from unrolled.core.discover import file_name
from unrolled.core.errors import UnrolledError
from unrolled.core.front import speak_to

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
    """Load the command that is asked for; of the others only their first sentence is read, for the list in the help."""
    asked = next((word for word in words if not word.startswith("-")), None)
    for name, sentence in commands().items():
        if name == asked:
            module = importlib.import_module(f"unrolled.cli.{name.replace('-', '_')}")
            app.command(name)(module.command)
        else:
            app.command(name, help=sentence)(_not_loaded)


def commands() -> dict[str, str]:
    """The first sentence of each command by its name: a file of this folder that defines `command`. Imports nothing."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name == "command":
                found[file_name(path.stem)] = (ast.get_docstring(node) or "").split("\n\n")[0]
    return found


def _not_loaded() -> None:
    raise AssertionError("a command that was not asked for")


def _words() -> list[str]:
    """What was typed, also where a shell asks how it may go on."""
    typed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS")
    return typed.split()[1:] if typed is not None and "_UNROLLED_COMPLETE" in os.environ else sys.argv[1:]


def main() -> None:
    """Run a command; every failure a user can cause is one sentence and an exit code."""
    speak_to("command line")
    _add_commands(_words())
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
