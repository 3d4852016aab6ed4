"""What a saved run can do, as commands: for the model card and the report. Imports no torch."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any


def commands(config: Mapping[str, Any], result: Mapping[str, Any], place: str) -> list[tuple[str, str]]:
    """What a saved run can do, and the command that does it."""
    more, source = own_words(config.get("own_file")), str(config.get("source") or "memory")
    found = []
    for use in result.get("uses") or []:
        words = shlex.join(["unrolled", use["verb"], place, *use["words"]])
        found.append((str(use["what"]), words + more))
    named = ["DATA"] if source == "memory" else [] if source.startswith("builtin:") else ["--trained-on", source]
    again = shlex.join(["unrolled", "evaluate", place, *named])
    inside = shlex.join(["unrolled", "inspect", place])
    return [*found, ("evaluate again", again + more), ("inspect the model", inside + more)]


def data_words(source: Any) -> str:
    """The data of a run as a command takes it; what a saved config says may be anything."""
    return shlex.quote(str(source)) if source and source != "memory" else "DATA"


def own_words(own_file: Any) -> str:
    """The user's file of the model, behind a command."""
    return f" --with {shlex.quote(str(own_file))}" if own_file else ""
