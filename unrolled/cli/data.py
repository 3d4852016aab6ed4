"""`unrolled data`: what is built in, and what would be understood of a file."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from unrolled.cli.options import Json, print_json, with_options
from unrolled.data.config import DataConfig


@with_options({"data": DataConfig})
def command(
    source: Annotated[
        str | None, typer.Argument(help="A file, a folder or builtin:NAME; without it: the list.")
    ] = None,
    json: Json = False,
    values: dict[str, Any] = {},  # noqa: B006
) -> None:
    """List built-in data, or show what would be understood of yours before any training.

    Examples:

        unrolled data

        unrolled data names.csv --column name --condition language
    """
    from unrolled.data import builtin, describe

    if source is None:
        found = [builtin.about(name) for name in builtin.names()]
        if json:
            print_json(found)
            return
        for entry in found:
            print(f"{entry['name']:<24} {entry['size']:<16} {entry['description']} ({entry['licence']})")
        return
    config = DataConfig.parse({key.removeprefix("data."): value for key, value in values.items()})
    facts = describe.describe(source, config)
    if json:
        print_json(facts)
        return
    for name, value in facts.items():
        sys.stdout.write(f"{name.replace('_', ' ')}: {_plain(value)}\n")


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(each)}" for key, each in value.items())
    if isinstance(value, list):
        return "".join(f"\n  {_plain(each)}" for each in value)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
