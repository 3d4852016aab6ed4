"""`unrolled tasks`: what can be learned."""

from __future__ import annotations

from typing import Annotated

import typer

from unrolled.cli.options import Json, print_json


def command(
    name: Annotated[str | None, typer.Argument(help="A task; without it all are listed.")] = None,
    json: Json = False,
) -> None:
    """List the tasks, or show the settings of one.

    Examples:

        unrolled tasks

        unrolled tasks next-token --json
    """
    from unrolled.core import discover
    from unrolled.core.config import allowed

    facts = []
    for each in [name] if name else discover.tasks.names():
        module = discover.tasks.load(each)
        settings = {
            key: {"default": field.default, "allowed": allowed(field), "meaning": " ".join((field.description or "").split())}
            for key, field in module.Config.model_fields.items()
        }  # fmt: skip
        text = (module.__doc__ or "").strip()
        facts.append({"name": each, "models": module.Task.ACCEPTS, "score": module.Task.SCORE, "what": text,
                      "settings": settings})  # fmt: skip
    if json:
        print_json(facts[0] if name else facts)
        return
    for fact in facts:
        what = fact["what"] if name else fact["what"].splitlines()[0]
        print(f"{fact['name']}: {what.split(': ', 1)[-1]}")
        for key, setting in fact["settings"].items() if name else ():
            print(f"  {key} = {setting['default']}    {setting['allowed']}. {setting['meaning']}")
