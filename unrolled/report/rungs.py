"""How a race of models went: its rungs, the scores there, and who was stopped."""

from __future__ import annotations

from typing import Any

from unrolled.core.errors import listed
from unrolled.pictures.kinds import Table
from unrolled.pictures.letters import title_words
from unrolled.report.group import Group
from unrolled.report.read import mapping, number
from unrolled.report.words import score_words, time_words


def _rungs(table: dict[str, Any]) -> list[dict[str, Any]]:
    found = table.get("race")
    return [mapping(rung) for rung in found] if isinstance(found, list) else []


def _long(rung: dict[str, Any]) -> str:
    """How long each run was trained by then."""
    until = number(rung.get("until"))
    return f"up to {time_words(until)} each" if until is not None else f"{time_words(rung.get('time'))} each in all"


def words(table: dict[str, Any]) -> str:
    """How many runs were trained for how long, and which rows were stopped.

    >>> first = {"until": 9, "runs": ["a", "b", "c"], "stopped": {"c": "late"}}
    >>> words({"race": [first, {"time": 30, "runs": ["a", "b"]}]})
    '3 runs up to 9 s each, c stopped; then 2 runs 30 s each in all'
    """
    said = []
    for rung in _rungs(table):
        runs, stopped = rung.get("runs"), mapping(rung.get("stopped"))
        n = len(runs) if isinstance(runs, list) else 0
        said.append(
            f"{n} run{'s' if n != 1 else ''} {_long(rung)}" + (f", {listed(stopped)} stopped" if stopped else "")
        )
    return "; then ".join(said)


def rung_table(group: Group) -> Table | None:
    """The score of each row at every rung on validation data; None: there was no race."""
    judged = [rung for rung in _rungs(group.table) if mapping(rung.get("scores"))]
    if not judged:
        return None
    rows: list[list[Any]] = []
    for label in (row["label"] for row in group.rows):
        cells = [number(mapping(rung["scores"]).get(label)) for rung in judged]
        if any(cell is not None for cell in cells):
            why = next((rung["stopped"][label] for rung in judged if label in mapping(rung.get("stopped"))), "")
            rows.append([label, *map(score_words, cells), str(why)])
    unit = f"{title_words(group.criterion)} on validation data"
    return Table(title=f"Race: {unit}", columns=["model", *map(_long, judged), "stopped"], rows=rows)
