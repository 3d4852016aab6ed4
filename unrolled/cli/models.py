"""`unrolled models`: what can be trained."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from unrolled.cli.options import Json, With, fitted, print_json, setting_lines, terminal_width

WIDTH = 128  # of the input and output of the models that are counted here
MULTIPLY_ADDS = "multiply-adds for one more position of a stream after t positions"


def command(
    name: Annotated[str | None, typer.Argument(help="A model. [default: list all models]")] = None,
    with_: With = None,
    json: Json = False,
) -> None:
    """List the models, one line each, or show one: its equations, cost, reference and settings.

    Examples:

        unrolled models

        unrolled models lstm
    """
    from unrolled.core import discover

    if with_ is not None:
        discover.models.add_file(with_)
    if name is not None:
        discover.models.require(name)  # before anything heavy is imported
    if name is None and not json:
        _list(discover.models.names())
        return
    facts = [facts_of(each) for each in ([name] if name else discover.models.names())]
    if json:
        print_json(facts[0] if name else facts)
    else:
        _show(facts[0])


def facts_of(name: str) -> dict[str, Any]:
    """All that is known of a model before it is trained."""
    from unrolled.core import discover
    from unrolled.core.config import settings_of
    from unrolled.core.spec import Sizes
    from unrolled.layers.parts.encoder_decoder import body_of
    from unrolled.runs import cost
    from unrolled.runs.build import count_parameters

    spec, told = discover.model(name), discover.models.told(name)["__doc__"] or ""
    body = body_of(spec, spec.config(), Sizes(WIDTH, WIDTH, WIDTH))
    return {
        "name": name,
        "kind": spec.kind,
        "what": spec.summary,
        "parameters": count_parameters(body),
        **cost.facts(body),
        "reference": spec.reference,
        "settings": settings_of(spec.config),
        "equations": told.strip() or spec.summary,
    }


def _list(names: list[str]) -> None:
    """A line for each model, as wide as the terminal. Imports no model: their files are read."""
    from unrolled.core import discover

    for name in names:
        told = discover.models.told(name)
        if not {"kind", "summary"} <= told.keys():
            told = vars(discover.model(name))
        line = f"{name:<{max(map(len, names))}}  {told['kind']:<11}  {told['summary']}"
        print(fitted(line, terminal_width()))


def field_words(fact: dict[str, Any]) -> str:
    return "all" if fact["receptive_field"] is None else str(fact["receptive_field"])


def tick_words(fact: dict[str, Any]) -> str:
    """An encoder has no tick: it reads the whole again."""
    from unrolled.runs.cost import short

    if "tick_multiply_adds" not in fact:
        return ""
    grows = fact["tick_multiply_adds_per_position"]
    return short(fact["tick_multiply_adds"]) + (f" + {short(grows)} t" if grows else "")


def _show(fact: dict[str, Any]) -> None:
    from unrolled.runs.cost import LENGTH

    cost = f"{tick_words(fact)} {MULTIPLY_ADDS}" if tick_words(fact) else "none: the whole sequence is read again"
    print(fact["equations"])
    print(f"""
Kind            {fact["kind"]}
Reference       {fact["reference"] or "none"}
Parameters      {fact["parameters"]:,} (of the body with these settings, input and output width {WIDTH})
Receptive field {field_words(fact)}
Cost per tick   {cost}
Serial depth    {fact["serial_depth"]} sequential layer applications to train on {LENGTH} positions

Settings (options of train: d_state is --d-state):""")
    for line in setting_lines(fact["settings"]):
        print(line)
