"""`unrolled data`: built-in data sets, how a file will be parsed, and the cache of prepared data."""

from __future__ import annotations

import sys
from itertools import groupby
from typing import Annotated, Any

import typer

from unrolled.cli.options import Json, With, print_json, require_names, with_options
from unrolled.core.config import parse_assignments
from unrolled.data.config import DataConfig, FilesConfig

MANY = 6  # columns alike beside each other, of which the first and the last are shown
LETTERS = 8  # of words that a line holds beside each other, such as tokens


@with_options({"data": DataConfig, "files": FilesConfig})
def command(
    source: Annotated[
        str | None, typer.Argument(help="A file, a folder or builtin:NAME. [default: list the built-in data sets]")
    ] = None,
    task: Annotated[str | None, typer.Option(help="The task to parse it for. [default: guessed from the data]")] = None,
    set_: Annotated[list[str], typer.Option("--set", help="Any setting of the task as key=value.")] = [],  # noqa: B006
    with_: With = None,
    clear_cache: Annotated[
        bool, typer.Option("--clear-cache", help="Delete prepared data from the cache, except what is in use.")
    ] = False,
    json: Json = False,
    values: dict[str, Any] = {},  # noqa: B006
) -> None:
    """List the built-in data sets, or show how your data will be parsed before you train: task, columns and their use,
    split, first examples.

    All settings of the task are options too, such as `--target stars`: `unrolled data --task classify --help` lists
    them.

    Examples:

        unrolled data

        unrolled data reviews.csv

        unrolled data names.csv --column name --condition language

        unrolled data --clear-cache
    """
    from unrolled.core import discover
    from unrolled.core.errors import UsageError
    from unrolled.core.front import option
    from unrolled.data import builtin_sets

    if with_ is not None:
        discover.join(with_)
    require_names(task, [], None)
    if clear_cache:
        if source is not None or values or set_ or task:
            raise UsageError(f"{option('clear_cache')} deletes all prepared data and takes no other argument")
        _clear(json)
        return
    if source is None:
        found = [builtin_sets.about(name) for name in builtin_sets.names()]
        if json:
            print_json(found)
            return
        for entry in found:
            print(f"{entry['name']:<24} {entry['size']:<16} {entry['description']} ({entry['licence']})")
        print(_about_cache())
        return
    from unrolled.runs.describe import describe

    facts = describe(source, task, values | parse_assignments(set_))
    if json:
        print_json(facts)
    else:
        _show(facts)


def _show(facts: dict[str, Any]) -> None:
    """For people: what decides first, then all that was found."""
    from unrolled.runs.guess import Guessed

    facts = dict(facts)
    task, why = facts.pop("task"), facts.pop("guessed")
    print(f"task: {task if why is None else Guessed(task, why)}")
    for (holds, use), alike in groupby(facts.pop("columns"), key=lambda each: (each["holds"], each["use"])):
        names = [column["name"] for column in alike]
        shown = [f"columns {names[0]} to {names[-1]}"] if len(names) > MANY else [f"column {name}" for name in names]
        for each in shown:
            print(f"{each}: {holds}, {use or 'not used'}")
    for name, value in facts.items():
        if value not in (None, [], {}):
            sys.stdout.write(f"{name.replace('_', ' ')}: {_plain(value)}\n")


def _clear(json: bool) -> None:
    from unrolled.data.storage import cache
    from unrolled.report.words import size_words

    found = cache.clear()
    place = cache.cache_directory()
    if json:
        print_json({"place": str(place), "removed": found.removed, "bytes": found.size, "in_use": found.in_use})
        return
    entries = "1 entry" if found.removed == 1 else f"{found.removed} entries"
    print(f"deleted {entries} of prepared data ({size_words(found.size)}) in {place}")
    if found.in_use:
        print(f"kept {found.in_use}, because a running process uses {'it' if found.in_use == 1 else 'them'}")


def _about_cache() -> str:
    """Where prepared data is kept, and how much of it there is."""
    from unrolled.data.storage import cache
    from unrolled.report.words import size_words

    most, size = cache.limit(), size_words(sum(entry.size for entry in cache.kept()))
    at_most = "no limit" if most is None else f"at most {size_words(most)}"
    return f"\nprepared data: {size} in {cache.cache_directory()} ({at_most}); --clear-cache deletes it"


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        each = {key.replace("_", " "): _plain(inner) for key, inner in value.items() if inner is not None}
        if all(isinstance(inner, dict) for inner in value.values()):
            return "".join(f"\n  {key}: {words}" for key, words in each.items())
        return ", ".join(f"{key} {words}" for key, words in each.items())
    if isinstance(value, list):
        alone = all(isinstance(each, int | float) or (isinstance(each, str) and len(each) <= LETTERS) for each in value)
        return " ".join(map(_plain, value)) if alone else "".join(f"\n  {_plain(each)}" for each in value)
    if isinstance(value, str):
        return value.replace("\n", "⏎")
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
