"""`unrolled models`: what can be trained."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from unrolled.cli.options import Json, With, print_json, setting_lines

WIDTH = 128  # of the input and output of the models that are counted here


def command(
    name: Annotated[str | None, typer.Argument(help="A model; without it all are listed.")] = None,
    with_: With = None,
    json: Json = False,
) -> None:
    """List the models, or show the settings of one.

    Examples:

        unrolled models

        unrolled models lstm
    """
    from rich.console import Console

    from unrolled.core import discover

    if with_ is not None:
        discover.models.add_file(with_)
    names = [name] if name else discover.models.names()
    facts = [_facts(discover.models.load(each), each) for each in names]
    if json:
        print_json(facts[0] if name else facts)
    elif name:
        _show(Console(file=sys.stdout, highlight=False), facts[0])
    else:
        _list(Console(file=sys.stdout), facts)


def _facts(module: Any, name: str) -> dict[str, Any]:
    from unrolled.core.config import settings_of
    from unrolled.runs.build import count_parameters

    body = module.make(module.Config(), WIDTH, WIDTH)
    return {
        "name": name,
        "kind": module.KIND,
        "what": (module.__doc__ or "").strip().splitlines()[0],
        "parameters": count_parameters(body),
        "receptive_field": getattr(body, "receptive_field", None),
        "state_grows": getattr(body, "state_grows", None),
        "reference": getattr(module, "REFERENCE", ""),
        "settings": settings_of(module.Config),
        "equations": (module.__doc__ or "").strip(),
    }


def _list(console: Any, facts: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(title=f"Models (parameters of the body at its default size, width {WIDTH} in and out)")
    for title in ("model", "kind", "what", "parameters", "receptive field", "reference"):
        table.add_column(title, justify="right" if title in ("parameters", "receptive field") else "left")
    for fact in facts:
        field = fact["receptive_field"]
        seen = "all" if field is None else str(field)
        what = fact["what"].split(": ", 1)[-1]
        table.add_row(fact["name"], fact["kind"], what, f"{fact['parameters']:,}", seen, fact["reference"])
    console.print(table)


def _show(console: Any, fact: dict[str, Any]) -> None:
    console.print(fact["equations"], markup=False)
    console.print(f"\nSettings (--set key=value), {fact['parameters']:,} parameters at these defaults:", markup=False)
    for line in setting_lines(fact["settings"]):
        console.print(line, markup=False, soft_wrap=True)
