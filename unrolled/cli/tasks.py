"""`unrolled tasks`: what can be learned."""

from __future__ import annotations

from typing import Annotated

import typer

from unrolled.cli.options import Json, print_json, setting_lines


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
    from unrolled.core.config import settings_of

    facts = []
    for each in [name] if name else discover.tasks.names():
        module = discover.tasks.load(each)
        what, settings = (module.__doc__ or "").strip(), settings_of(module.Config)
        kinds, score = module.Task.ACCEPTS, module.Task.SCORE
        facts.append({"name": each, "models": kinds, "score": score, "what": what, "settings": settings})
    if json:
        print_json(facts[0] if name else facts)
        return
    for fact in facts:
        what = fact["what"] if name else fact["what"].splitlines()[0]
        print(f"{fact['name']}: {what.split(': ', 1)[-1]}")
        for line in setting_lines(fact["settings"]) if name else ():
            print(line)
