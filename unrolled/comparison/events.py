"""What happens in a comparison as a file that others may read while it grows: `events.jsonl`, one JSON object a line.

    {"event": "plan", "at": .., "task": .., "data": .., "budget": .., "runs": [{"folder": .., "label": .., "kind": ..}]}
    {"event": "begin" | "step" | "evaluation" | "sample" | "closing" | "done" | .., "at": .., "folder": ..}
    {"event": "note", "at": .., "text": ..}

`at` is the time of the clock in seconds. A comparison that is resumed adds to the file, beginning with its plan.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.comparison.files import read_plan
from unrolled.core.errors import UnrolledError
from unrolled.core.opening import open_regular
from unrolled.runs.results import read_result
from unrolled.runs.storage.directory import RunDirectory

if TYPE_CHECKING:
    from unrolled.comparison.plan import Plan
    from unrolled.comparison.view import View

EVENTS = "events.jsonl"
OFTEN, STEPS = 1.0, 500  # seconds between two steps of a run that are kept, and about how many of them there are
MOST = 64 * 2**20  # bytes that are read
AT_ONCE = 2**20  # bytes that are read at a time


class Recorded:
    """A view that keeps what it shows in the comparison's directory, and hands it to another."""

    def __init__(self, inner: View) -> None:
        self.inner = inner
        self.file: int | None = None
        self.kept: dict[str, float] = {}  # when the last step of a run was kept
        self.often = OFTEN
        self.folder = Path()

    def begin(self, plan: Plan, folder: Path, started: float | None = None) -> None:
        self.folder = folder
        passed = 0.0 if started is None else time.monotonic() - started
        more = getattr(os, "O_NOFOLLOW", 0)
        with suppress(OSError):  # what cannot be written here is told by the runs
            self.file = os.open(folder / EVENTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT | more, 0o666)
            if os.fstat(self.file).st_size:
                os.write(self.file, b"\n")  # behind a line that a kill has cut
        self.often = max(OFTEN, (plan.asked.time if plan.asked.steps is None else 0.0) / STEPS)
        self._write(_planned(plan, time.time() - passed))
        self.inner.begin(plan, folder, started)

    def event(self, event: dict[str, Any]) -> None:
        if self._is_kept(event):
            more = self._score(event["folder"]) if event["event"] == "done" else {}
            self._write({"at": round(time.time(), 3), **event, **more})
        self.inner.event(event)

    def _is_kept(self, event: dict[str, Any]) -> bool:
        """Of steps, of which there are many, only some."""
        if event["event"] != "step":
            return True
        now = time.monotonic()
        if now - self.kept.get(event["folder"], -self.often) < self.often:
            return False
        self.kept[event["folder"]] = now
        return True

    def _score(self, folder: str) -> dict[str, Any]:
        """The score of a run that is done, also of one that is fitted in closed form."""
        with suppress(UnrolledError, KeyError, TypeError):
            result = read_result(RunDirectory(self.folder / folder))
            name = result["criterion"]
            return {"criterion": name, "valid": result["valid"][name]}
        return {}

    def say(self, text: str) -> None:
        self._write({"event": "note", "at": round(time.time(), 3), "text": text})
        self.inner.say(text)

    def end(self) -> None:
        if self.file is not None:
            os.close(self.file)
            self.file = None
        self.inner.end()

    def _write(self, event: dict[str, Any]) -> None:
        if self.file is None:
            return
        try:
            os.write(self.file, json.dumps(event, allow_nan=True).encode() + b"\n")
        except OSError as error:  # a full disk: the comparison itself tells of it where it matters
            os.close(self.file)
            self.file = None
            self.inner.say(f"note: {EVENTS} is no longer written ({error.strerror})")


def _name(data: str) -> str:
    """The name of data without its place."""
    return data if data.startswith("builtin:") else Path(data).name


def retold(folder: Path) -> list[dict[str, Any]]:
    """The events of a comparison that kept none, as far as its runs tell: their scores and when they had them."""
    try:
        plan = read_plan(folder)
    except UnrolledError:
        return []
    events: list[dict[str, Any]] = [_planned(plan, 0.0)]
    for job in plan.jobs:
        with suppress(UnrolledError, KeyError, TypeError):
            run = RunDirectory(folder / job.folder)
            result, begun = read_result(run), {"at": 0.0, "folder": job.folder}
            name = result["criterion"]
            events.append({"event": "begin", **begun})
            for line in run.read_metrics():
                if line.get("split") == "valid" and name in line:
                    figures = {"step": line["step"], "figures": {name: line[name]}}
                    events.append({"event": "evaluation", **begun, "at": line["seconds"], **figures})
            events.append({"event": "done", **begun, "criterion": name, "valid": result["valid"][name]})
    return events


def _planned(plan: Plan, at: float) -> dict[str, Any]:
    return {
        "event": "plan", "at": round(at, 3), "task": plan.task, "data": _name(plan.data), "steps": plan.asked.steps,
        "budget": plan.asked.time if plan.asked.steps is None else None, "notes": plan.notes, "recipe": plan.recipe,
        "runs": [{"folder": job.folder, "label": job.label, "kind": job.kind} for job in plan.jobs],
    }  # fmt: skip


def read_events(folder: Path, start: int = 0) -> tuple[list[dict[str, Any]], int]:
    """The events behind a place in the file, at most some, and the place behind the last of them."""
    try:
        with open_regular(folder / EVENTS, MOST, within=folder) as file:
            file.seek(start)
            data = file.read(AT_ONCE)
    except UnrolledError:
        return [], start
    whole = data[: data.rfind(b"\n") + 1]
    found = []
    for line in whole.splitlines():
        with suppress(ValueError, RecursionError):  # a kill cuts the last one
            value = json.loads(line)
            if isinstance(value, dict) and isinstance(value.get("event"), str):
                found.append(value)
    return found, start + len(whole)
