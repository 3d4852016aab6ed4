"""What each member of an ensemble brings, and what it costs."""

from __future__ import annotations

from typing import Any

from unrolled.pictures.kinds import Table
from unrolled.pictures.letters import title_words
from unrolled.report.group import Group
from unrolled.report.read import mapping, number
from unrolled.report.words import score_words

COLUMNS = ["member", "weight", "alone", "ensemble without it", "ensemble", "share of the time"]


def member_table(group: Group) -> Table | None:
    """Scores on a part of the validation data; None: there is no ensemble."""
    found = [run.result.get("members") for row in group.rows for run in group.runs_of(row)]
    members = next((each for each in found if isinstance(each, list) and each), None)
    if members is None:
        return None
    rows: list[list[Any]] = []
    for member in map(mapping, members):
        weight, cost = (number(member.get(name)) for name in ("weight", "cost"))
        scores = [score_words(number(member.get(name))) for name in ("alone", "without", "with")]
        shares = ["" if share is None else f"{share:.0%}" for share in (weight, cost)]
        rows.append([str(member.get("run") or ""), shares[0], *scores, shares[1]])
    title = f"Ensemble: what each member brings ({title_words(group.criterion)} on a part of the validation data)"
    return Table(title=title, columns=COLUMNS, rows=rows)
