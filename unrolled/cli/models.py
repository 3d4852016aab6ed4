"""`unrolled models`: what can be trained."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from unrolled.cli.options import Json, With, print_json, setting_lines

WIDTH = 128  # of the input and output of the models that are counted here
COLUMNS: dict[str, Any] = {
    "model": "left",
    "kind": "left",
    "what": "left",
    "parameters": "right",
    "receptive field": "right",
    "cost per tick": "right",
    "serial depth": "right",
    "reference": "left",
}


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
    facts = [facts_of(discover.models.load(each), each) for each in names]
    if json:
        print_json(facts[0] if name else facts)
    elif name:
        _show(Console(file=sys.stdout, highlight=False), facts[0])
    else:
        _list(Console(file=sys.stdout), facts)


def facts_of(module: Any, name: str) -> dict[str, Any]:
    """All that is known of a model before it is trained."""
    from unrolled.core.config import settings_of
    from unrolled.layers.encdec import body_of
    from unrolled.runs import cost
    from unrolled.runs.build import count_parameters

    body = body_of(module, module.Config(), WIDTH, WIDTH)
    return {
        "name": name,
        "kind": module.KIND,
        "what": (module.__doc__ or "").strip().splitlines()[0],
        "parameters": count_parameters(body),
        **cost.facts(body),
        "reference": getattr(module, "REFERENCE", ""),
        "settings": settings_of(module.Config),
        "equations": (module.__doc__ or "").strip(),
    }


def _list(console: Any, facts: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from unrolled.runs.cost import LENGTH

    table = Table(title=f"Models (the body at its default size, width {WIDTH} in and out)", caption=_caption(LENGTH))
    for title, justify in COLUMNS.items():
        table.add_column(title, justify=justify)
    for fact in facts:
        table.add_row(
            fact["name"], fact["kind"], fact["what"].split(": ", 1)[-1], f"{fact['parameters']:,}", field_words(fact),
            tick_words(fact), str(fact["serial_depth"]), fact["reference"],
        )  # fmt: skip
    console.print(table)


def _caption(length: int) -> str:
    return (
        "cost per tick: multiply-adds for one more position of a stream, t positions behind it "
        "(encoders and tables read the whole again); "
        f"serial depth: layer applications that must wait for one another to train on {length} positions"
    )


def field_words(fact: dict[str, Any]) -> str:
    return "all" if fact["receptive_field"] is None else str(fact["receptive_field"])


def tick_words(fact: dict[str, Any]) -> str:
    """An encoder or a table model has no tick: it reads the whole again."""
    from unrolled.runs.cost import short

    if "tick_multiply_adds" not in fact:
        return ""
    grows = fact["tick_multiply_adds_per_position"]
    return short(fact["tick_multiply_adds"]) + (f" + {short(grows)} t" if grows else "")


def _show(console: Any, fact: dict[str, Any]) -> None:
    console.print(fact["equations"], markup=False)
    costs = f"cost per tick {tick_words(fact) or 'none'}, serial depth {fact['serial_depth']}"
    console.print(f"\nReceptive field {field_words(fact)}, {costs}", markup=False)
    console.print(f"\nSettings (--set key=value), {fact['parameters']:,} parameters at these defaults:", markup=False)
    for line in setting_lines(fact["settings"]):
        console.print(line, markup=False, soft_wrap=True)
