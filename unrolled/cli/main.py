"""The command `unrolled`: one file of this folder is one command. Nothing here imports torch."""

from __future__ import annotations

import ast
import importlib
import os
import sys
import traceback
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.rich_utils import rich_format_error

import unrolled
from unrolled.cli import streams
from unrolled.cli.settings import as_settings
from unrolled.cli.verbs import command_of, join_verbs
from unrolled.core import discover
from unrolled.core.discover import file_name
from unrolled.core.front import speak_to
from unrolled.core.outside import explained
from unrolled.pictures.letters import clean, shortened

LONGEST = 4000  # letters of a message: its beginning and its end
USAGE: Any = typer.BadParameter.__base__  # what typer raises for all that is typed wrongly


def _version(asked: bool) -> None:
    if asked:
        print(f"unrolled {unrolled.__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _program(words: list[str]) -> typer.Typer:
    """The command that is asked for; of the others only their first sentence is read, for the list in the help."""
    app = typer.Typer(
        name="unrolled",
        help="Train, compare, evaluate and inspect sequence models on your own data.",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        add_completion=True,
    )
    app.callback()(_root)
    asked = next((word for word in words if not word.startswith("-")), None)
    known = commands()
    if asked is not None and asked not in known:
        join_verbs(words)
    for name, sentence in (known | verbs()).items():
        if name == asked and name in known:
            app.command(name)(_command(name, words))
        elif name == asked:
            app.command(name)(command_of(name))
        else:
            app.command(name, help=sentence)(_not_loaded)
    return app


def _command(name: str, words: list[str]) -> Any:
    command = importlib.import_module(f"unrolled.cli.{name.replace('-', '_')}").command
    if "--help" not in words:
        return command
    from unrolled.cli.options import for_help

    return for_help(command, words)


@cache
def commands() -> dict[str, str]:
    """The first sentence of each command by its name: a file of this folder that defines `command`. Imports nothing."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name == "command":
                found[file_name(path.stem)] = (ast.get_docstring(node) or "").split("\n\n")[0]
    return found


def verbs() -> dict[str, str]:
    """What each verb does that has no file of its own here, by its name."""
    found = {name: str(discover.verbs.told(name)["summary"]) for name in discover.verbs.names()}
    return {name: summary for name, summary in found.items() if name not in commands()}


def _not_loaded() -> None:
    raise AssertionError("a command that was not asked for")


def _words() -> list[str]:
    """What was typed, also where a shell asks for completions."""
    typed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS")
    return typed.split()[1:] if typed is not None and "_UNROLLED_COMPLETE" in os.environ else sys.argv[1:]


def main() -> None:
    """Run a command; every failure a user can cause is one sentence and an exit code."""
    speak_to("command line")
    with streams.guarded():
        try:
            code: Any = _run()
        except SystemExit as ended:  # also where whoever read us has gone
            code = ended.code
        except KeyboardInterrupt:
            code = 130
        except Exception as error:
            code = _told(error)
    sys.exit(code)


def _run() -> int:
    """The exit code of the command, when all that it printed is written."""
    try:
        code = _called(_words())
    except typer.Abort:
        print("Aborted.", file=sys.stderr)
        code = 1
    except USAGE as error:
        error.message = clean(error.message)  # what was typed may be the name of a file
        rich_format_error(error)
        code = error.exit_code
    sys.stdout.flush()
    return int(code or 0)


def _called(words: list[str]) -> Any:
    program = typer.main.get_command(_program(words))
    if words == sys.argv[1:]:  # not where a shell asks how they may go on
        asked = next((word for word in words if not word.startswith("-")), "")
        command = program.commands.get(asked)  # type: ignore[attr-defined]
        _show_no_type_of_switches(program, command)
        words = words if command is None else as_settings(words, command.params)
        return program(args=words, prog_name="unrolled", standalone_mode=False)
    return program(standalone_mode=False)


def _show_no_type_of_switches(*shown: Any) -> None:
    """In the help a switch such as --json stands alone: it takes no value."""
    for command in filter(None, shown):
        for param in command.get_params(typer.Context(command)):
            if param.param_type_name == "option" and param.is_flag:
                param.metavar = ""


def _told(error: Exception) -> int:
    """Print the sentence for an error; its exit code. With UNROLLED_TRACEBACK also what it came from, if anything."""
    known, asked = explained(error), bool(os.environ.get("UNROLLED_TRACEBACK"))
    if known is not None and asked and known.__cause__ is not None:
        traceback.print_exception(known)
    if known is not None:
        print(f"unrolled: {shortened(known, LONGEST)}", file=sys.stderr)
        return known.exit_code
    if asked:
        raise error
    what = f"{type(error).__name__}: {shortened(error, LONGEST)}"
    print(
        f"unrolled: internal error, please report it: {what} (set UNROLLED_TRACEBACK=1 to see where)", file=sys.stderr
    )
    return 1


if __name__ == "__main__":
    main()
