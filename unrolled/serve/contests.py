"""The comparisons of a server, running or finished: what is known of each, and what happens in it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from unrolled.comparison.events import read_events, retold
from unrolled.comparison.files import PLAN, TABLE, read_plan
from unrolled.core.errors import UnrolledError, nearest
from unrolled.runs.selection import read_table
from unrolled.runs.storage.locks import is_idle
from unrolled.serve.found import as_name
from unrolled.serve.plain import plain
from unrolled.serve.refused import Refused
from unrolled.serve.trained import Trained
from unrolled.serve.uploads import without_places

State = Literal["starting", "running", "stopping", "stopped", "finished", "failed"]
OFTEN, ALIVE = 0.3, 10.0  # seconds between two looks at the file of events, and between two signs of life
COLUMNS = (
    "label", "kind", "valid", "score", "interval", "parameters", "training_seconds", "failed", "not_trained", "stopped"
)  # fmt: skip
FACTS = (
    "task", "verdict", "score", "criterion", "split", "selected", "winner", "unit", "units", "notes", "guessed",
    "metrics",
)  # fmt: skip


class Contests:
    """Comparisons by name: those of folders that are served, and those that were started here."""

    def __init__(self, folders: Callable[[], list[Path]], trained: Trained | None) -> None:
        self._folders, self.trained = folders, trained

    def all(self) -> dict[str, Path]:
        """The folders of all comparisons by name, the newest first."""
        found = {as_name(folder.name): folder for folder in self._folders() if (folder / PLAN).is_file()}
        if self.trained is not None:
            found |= {name: each.folder for name, each in self.trained.started.items()}
        return dict(sorted(found.items(), key=lambda pair: -_changed(pair[1])))

    def require(self, name: str) -> Path:
        found = self.all()
        if name not in found:
            raise Refused(404, f"there is no comparison '{name[:60]}'; {nearest(name[:60], found)}", "not_found")
        return found[name]

    def state(self, name: str, folder: Path) -> State:
        """How far a comparison is."""
        started = None if self.trained is None else self.trained.started.get(name)
        if started is not None and started.process is not None:
            return "stopping" if started.stopping else "running" if (folder / PLAN).is_file() else "starting"
        if folder.is_dir() and not is_idle(folder):
            return "running"
        if _table(folder).get("finished"):
            return "finished"
        return "failed" if started is not None and started.error is not None else "stopped"

    def listed(self) -> list[dict[str, Any]]:
        """Each with its state."""
        return [{"comparison": name, "state": self.state(name, folder)} for name, folder in self.all().items()]

    def about(self, name: str) -> dict[str, Any]:
        """A comparison with its table, as far as there is one."""
        folder = self.require(name)
        table = _table(folder)
        started = None if self.trained is None else self.trained.started.get(name)
        rows = [{key: row.get(key) for key in COLUMNS} | {"runs": _runs(name, row)} for row in table.get("rows", [])]
        state = self.state(name, folder)
        mine = self.trained is not None and folder.parent == self.trained.folder
        facts = {key: table.get(key) for key in FACTS}
        return self._without_places({
            "comparison": name, "state": state, "error": None if started is None else started.error, **facts,
            "rows": rows, "can_stop": mine and started is not None and started.process is not None,
            "can_resume": mine and state in ("stopped", "failed") and (folder / PLAN).is_file(),
        })  # fmt: skip

    def _without_places(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Facts as values of JSON, in which uploaded files have their names alone."""
        found = dict(plain(facts))
        return found if self.trained is None else dict(without_places(found, self.trained.uploads.folder))

    def data_of(self, name: str) -> str:
        """What the plan of a comparison names as its data."""
        try:
            return read_plan(self.require(name)).data
        except UnrolledError:
            raise Refused(409, "this comparison has no plan that can be resumed", "no_plan") from None

    async def events(self, name: str, start: int, seconds: float) -> AsyncIterator[bytes]:
        """What happens, as server-sent events: from a place in the file of events, for some seconds or to the end.

        Each carries the place behind it as `next`, from which a later request continues.
        """
        folder, place, until, alive = self.require(name), start, time.monotonic() + seconds, time.monotonic()
        while True:
            state = await asyncio.to_thread(self.state, name, folder)  # before the file is read to its end
            found, place = await asyncio.to_thread(read_events, folder, place)
            for event in found:
                yield _sent(self._without_places({**event, "next": place}))
            if found:
                alive = time.monotonic()
                continue
            if state not in ("starting", "running", "stopping"):
                for event in [] if place else await asyncio.to_thread(retold, folder):
                    yield _sent(self._without_places(event))
                yield _sent({"event": "over", "state": state})
                return
            if time.monotonic() > until:
                return
            if time.monotonic() - alive > ALIVE:
                alive = time.monotonic()
                yield b": still here\n\n"
            await asyncio.sleep(OFTEN)


def _sent(event: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def _runs(name: str, row: Mapping[str, Any]) -> list[str]:
    """The runs of a row by the names that they are served under."""
    return [f"{name}.{as_name(Path(run).name)}" for run in row.get("runs") or []]


def _table(folder: Path) -> dict[str, Any]:
    if not (folder / TABLE).is_file():
        return {}
    try:
        return read_table(folder)
    except UnrolledError:  # told where it is opened
        return {}


def _changed(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:  # it has just begun
        return time.time()
