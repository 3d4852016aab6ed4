"""`unrolled tasks`: what can be learned."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from unrolled.cli.options import Json, fitted, print_json, setting_lines, summary, terminal_width


def command(
    name: Annotated[str | None, typer.Argument(help="A task. [default: list all tasks]")] = None,
    json: Json = False,
) -> None:
    """List the tasks, or show the settings of one.

    Examples:

        unrolled tasks

        unrolled tasks next-token --json
    """
    from unrolled.core import discover

    if not name and not json:
        for each in discover.tasks.names():
            print(fitted(f"{each:<12} {summary(discover.tasks.told(each))}", terminal_width()))
        return
    facts = [facts_of(each) for each in ([name] if name else discover.tasks.names())]
    if json:
        print_json(facts[0] if name else facts)
        return
    print(f"{name}: {facts[0]['what'].split(': ', 1)[-1]}")
    for line in setting_lines(facts[0]["settings"]):
        print(line)


def facts_of(name: str) -> dict[str, Any]:
    """All that is known of a task."""
    from unrolled.core import discover
    from unrolled.core.config import settings_of

    module = discover.tasks.load(name)
    what, settings = (module.__doc__ or "").strip(), settings_of(module.Config)
    kinds, score = module.Task.ACCEPTS, module.Task.SCORE
    return {"name": name, "models": kinds, "score": score, "what": what, "settings": settings}
