"""`unrolled runs`: what was trained, and how to be rid of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from unrolled.cli.options import Json, print_json

FOLDERS = ("runs", "comparisons", "tuning")


def command(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="path", help="Folders to search; with --delete: the runs and comparisons to delete."),
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the named runs and comparisons.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
    json: Json = False,
) -> None:
    """List the runs, comparisons and searches in runs/, comparisons/ and tuning/ or in other folders, or delete them.

    Examples:

        unrolled runs

        unrolled runs --delete runs/lstm-python-docs
    """
    from unrolled.core.errors import UsageError, listed
    from unrolled.report.listing import list_all

    if delete:
        if not paths:
            raise UsageError("name the runs to delete: unrolled runs --delete runs/NAME")
        _delete([Path(path) for path in paths], yes)
        return
    for path in paths or []:
        if not Path(path).is_dir():
            raise UsageError(f"{path} is not a folder")
    entries = list_all(paths or FOLDERS)
    if json:
        print_json([entry.as_json() for entry in entries])
    elif entries:
        _show(entries)
    else:
        looked = listed(paths or FOLDERS)
        print(f"No runs or comparisons in {looked}; `unrolled train` creates one.")


def _delete(paths: list[Path], yes: bool) -> None:
    from unrolled.report import listing
    from unrolled.report.words import size_words

    for path in paths:
        listing.check_deletable(path)
    size = sum(entry.bytes for entry in listing.list_all(paths))
    if not yes:
        names = ", ".join(map(str, paths))
        typer.confirm(f"Delete {names} ({size_words(size)}) permanently?", abort=True)
    listing.delete(paths)
    print(f"Deleted {', '.join(map(str, paths))}; {size_words(size)} freed.")


def _show(entries: list[Any]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from unrolled.pictures.letters import title_words
    from unrolled.pictures.screen import Screen
    from unrolled.report.words import age_words, count_words, score_words, size_words

    title = f"{len(entries)} runs and comparisons, newest first"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0))
    for name in ("where", "task", "model", "score", "parameters", "size", "age", "state"):
        right, may_fold = name in ("score", "parameters", "size", "age"), name in ("where", "model")
        table.add_column(
            name.replace("parameters", "params"), justify="right" if right else "left", overflow="fold",
            no_wrap=not may_fold, min_width=8 if may_fold else None,
        )  # fmt: skip
    for entry in entries:
        score = "" if entry.score is None else f"{score_words(entry.score)} {title_words(entry.score_name)}"
        model = f"{entry.model} (of {entry.runs} runs)" if entry.kind == "comparison" else entry.model
        cells = [
            entry.path, entry.task, model, score, count_words(entry.parameters),
            size_words(entry.bytes), age_words(entry.age_seconds), entry.state,
        ]  # fmt: skip
        table.add_row(*map(Text, cells))
    Screen(file=sys.stdout, width=None if sys.stdout.isatty() else 160).print(table)
