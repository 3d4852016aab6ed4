"""What came of a search: the trials that were trained to the end as the rows of a table, and what mattered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unrolled.comparison.files import write_table
from unrolled.comparison.plan import Plan
from unrolled.comparison.table import make_table
from unrolled.report.page import write_report
from unrolled.report.words import setting_words, short_names
from unrolled.tuning.files import Search
from unrolled.tuning.study import Study, Trial
from unrolled.tuning.work import RUNGS


def tabled(folder: Path, search: Search, plan: Plan, study: Study, command: str, finished: bool) -> dict[str, Any]:
    """Write the table and the report; the search is the table's `tuning`."""
    trials = study.trials()
    counts = {state: sum(each.state == state for each in trials) for state in ("done", "stopped", "failed")}
    first = f"{len(trials)} trials of {search.model}: {counts['done']} trained to the end, {counts['stopped']} stopped"
    notes = [first + (f", {counts['failed']} failed" if counts["failed"] else ""), *plan.notes]
    names = short_names(each.key for each in search.space)
    settings = {
        each.folder: ", ".join(f"{names[key]} {setting_words(value)}" for key, value in each.settings.items())
        for each in trials
    }
    plan = plan.model_copy(update={"notes": notes})
    table = make_table(folder, plan, command, {}, finished)
    for row in table["rows"]:
        row["recipe"] = [settings[name] for name in row["runs"]]
    table["tuning"] = told(search, trials, study)
    write_table(folder, table)
    write_report([folder])
    return table


def told(search: Search, trials: list[Trial], study: Study) -> dict[str, Any]:
    """The search as JSON values."""
    shares, n, rung = study.importance()
    where = "at their end" if rung is None else f"at {100 * RUNGS[rung]:.0f} % of their length"
    return {
        "model": search.model,
        "space": [each.model_dump(mode="json") for each in search.space],
        "importance": dict(sorted(shares.items(), key=lambda each: -each[1])),
        "importance_by": f"fANOVA over {n} trials, judged {where}",
        "trials": [
            {
                "run": each.folder, "state": each.state, "settings": dict(each.settings), "value": each.value,
                "scores": [each.scores.get(number) for number in range(len(RUNGS))], "why": each.why,
            }
            for each in trials
        ],
    }  # fmt: skip
