"""Runs of a comparison that failed: why, by which exit code, and which of them are not tried again.

A comparison that is resumed tries again what failed, for most causes may have passed: a full disk, too little memory, a
process that was killed. Training that diverged would diverge again, step by step, so it stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unrolled.comparison.plan import Plan
from unrolled.core.config import Record
from unrolled.core.errors import CannotWrite, DataError, Diverged, OutOfMemory, UnrolledError, UsageError, listed
from unrolled.report.page import NAME as PAGE
from unrolled.report.page import write_report
from unrolled.runs.selection import read_table
from unrolled.runs.storage.directory import TABLE, RunDirectory
from unrolled.runs.trust import named_beside, resume_command

CLASSES = {kind.exit_code: kind for kind in (UsageError, DataError, Diverged, CannotWrite, OutOfMemory)}
SHOWN = 3  # causes in the sentence; the table has all of them


class Failure(Record):
    """Why a run has no results."""

    why: str
    code: int = UnrolledError.exit_code

    @property
    def was_killed(self) -> bool:
        """By the system, most likely: memory ran out."""
        return self.code == OutOfMemory.exit_code

    def event(self, folder: str) -> dict[str, Any]:
        return {"event": "failed", "folder": folder, **self.model_dump()}


def diverged_before(folder: Path) -> dict[str, Failure]:
    """The runs of an earlier start that diverged, by folder, from the table that it saved."""
    try:
        told = read_table(folder).get("failures")
        failures = {name: Failure.parse(each) for name, each in told.items()} if isinstance(told, dict) else {}
    except UnrolledError:  # there is no table yet, or it is damaged: everything is tried again
        return {}
    return {name: failure for name, failure in failures.items() if failure.code == Diverged.exit_code}


def of_other_data(runs: Mapping[str, RunDirectory]) -> dict[str, Failure]:
    """The runs, by folder, that read their data as an earlier one did and found other data: it changed meanwhile."""
    first: dict[str, tuple[str, str]] = {}
    failures = {}
    for folder, run in runs.items():
        config, found = run.read_config(), run.read_json("data.json")["facts"].get("fingerprint")
        asked = {**config.get("data", {}), **dict.fromkeys(("ahead", "fraction", "held_out"))}  # which are of no matter
        read = json.dumps([asked, config.get("task_settings")], sort_keys=True)
        before, other = first.setdefault(read, (found, folder))
        if found != before:
            why = f"the data changed during the comparison, so this run and {other} were trained on different data"
            failures[folder] = Failure(why=f"{why}; compare again", code=DataError.exit_code)
    return failures


def complete(path: Path) -> None:
    """What a kill just after a run was finished has left undone: its page, and what lies about."""
    RunDirectory(path).tidy()
    if not (path / PAGE).exists():
        write_report([path])


def none_trained(folder: Path, plan: Plan, table: Mapping[str, Any], failed: Mapping[str, Failure]) -> UnrolledError:
    """The error of a comparison in which no model finished; of one kind where all causes are of one kind."""
    causes: dict[str, list[str]] = {}
    for row in table["rows"]:
        if row["kind"] == "model":
            causes.setdefault(row["not_trained"] or row["failed"], []).append(row["label"])
    shown = [f"{listed(labels)}: {why}" for why, labels in list(causes.items())[:SHOWN]]
    more = f"; and {len(causes) - SHOWN} more in {folder / TABLE}" if len(causes) > SHOWN else ""
    text = f"no model of this comparison was trained ({'; '.join(shown)}{more})"
    late = {UsageError.exit_code} if any(row["not_trained"] for row in table["rows"]) else set()
    codes = _codes(plan, failed, joined=False) | late or _codes(plan, failed, joined=True)
    if codes != {Diverged.exit_code}:
        again = resume_command("compare", folder, plan.data, {"own_file": plan.own_file, **named_beside(plan.given)})
        text += f"; fix the cause, then try again with: {again}"
    return CLASSES.get(codes.pop() if len(codes) == 1 else UnrolledError.exit_code, UnrolledError)(text)


def _codes(plan: Plan, failed: Mapping[str, Failure], joined: bool) -> set[int]:
    """Of models, or of those that join folds, which fail because a fold did."""
    jobs = [job for job in plan.jobs if job.kind == "model" and bool(job.members) is joined]
    return {failed[job.folder].code for job in jobs if job.folder in failed}
