"""What was chosen for a run, in words: shown, and kept in the run directory for the card and the report."""

from __future__ import annotations

from collections.abc import Sequence

from unrolled.runs.storage.directory import RunDirectory
from unrolled.training.progress import Progress

FILE = "recipe.json"


def add(run: RunDirectory, words: Sequence[str], shown: Progress) -> None:
    """Say some lines, and keep them behind those of before."""
    for line in words:
        shown.say(f"recipe: {line}")
    if words:
        run.write_json(FILE, [*kept(run), *words])


def kept(run: RunDirectory) -> list[str]:
    """All that was said so far."""
    return list(map(str, run.read_json(FILE))) if run.has(FILE) else []
