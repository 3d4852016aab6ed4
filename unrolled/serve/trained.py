"""Comparisons that visitors of the page start: one at a time, each a process that can be stopped and resumed.

Imports no torch.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unrolled.core import discover
from unrolled.core.config import Config
from unrolled.core.errors import Interrupted, UsageError
from unrolled.runs.config import full_keys
from unrolled.runs.storage.directory import first_free
from unrolled.runs.trust import is_path
from unrolled.serve import orders
from unrolled.serve.limits import Limits
from unrolled.serve.log import write
from unrolled.serve.orders import Process
from unrolled.serve.refused import Refused, busy, shortened
from unrolled.serve.uploads import Upload, Uploads, cannot_keep, without_places

FOLDER = "comparisons"
LEAST = 5.0  # seconds of a comparison
MOST_SETTINGS, LONGEST = 16, 200  # of a request, and characters of a value
EARLY = (-signal.SIGTERM, 130)  # of a process that was stopped before it had begun
LEAVING = 20.0  # seconds that a comparison may need to save when the server ends
GROUPS = ("data", "files", "task_settings")


@dataclass
class Started:
    """A comparison of this server, and what came of it."""

    name: str
    folder: Path
    upload: Upload
    process: Process | None = None
    stopping: bool = False
    error: str | None = None


class Trained:
    """The comparisons that this server has started."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self._limits = folder / FOLDER, limits
        self.uploads = Uploads(folder, limits)
        self.started: dict[str, Started] = {}
        self._looking = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> Started | None:
        """The comparison that is under way."""
        return next((each for each in self.started.values() if each.process is not None), None)

    async def describe(self, upload: Upload, task: str | None, settings: Mapping[str, Any]) -> dict[str, Any]:
        """How a file will be parsed."""
        if self._looking.locked():
            raise busy("another file is being looked at")
        order = {"do": "describe", "data": str(upload.path), **_checked(task, settings)}
        async with self._looking:
            answer = await orders.done(order, self._limits.seconds, upload.path.parent)
        if "error" in answer:
            raise self._refusal(answer)
        return dict(without_places(answer["done"], self.uploads.folder))

    async def start(
        self, upload: Upload, task: str | None, settings: Mapping[str, Any], own: Mapping[str, Any]
    ) -> Started:
        """Begin a comparison; `own` are settings of the comparison itself, its time among them."""
        budget = own["time"]
        if not LEAST <= budget <= self._limits.training:
            most = self._limits.training
            raise UsageError(f"invalid value budget = {budget:g}: expected seconds from {LEAST:g} to {most:g}")
        self.require_idle()
        order = {"do": "compare", "data": str(upload.path), **_checked(task, settings)}
        taken = {each.folder for each in self.started.values()}
        folder = first_free(self.folder / upload.path.stem, lambda path: path not in taken and not path.exists())
        order |= {"out": str(folder), "settings": {**order["settings"], **own}}
        return await self._work(Started(folder.name, folder, upload), order)

    async def resume(self, folder: Path, data: str) -> Started:
        """Continue a comparison of this server that was stopped; `data` is what its plan names."""
        self.require_idle()
        upload = next((each for each in self.uploads.all() if str(each.path) == data), None)
        if upload is None or folder.parent != self.folder:
            raise Refused(409, "its data is not among the uploaded files any more, so it cannot be resumed", "no_data")
        order = {"do": "resume", "data": str(upload.path), "out": str(folder)}
        return await self._work(Started(folder.name, folder, upload), order)

    def require_idle(self) -> None:
        """Refuse a second comparison."""
        if self.running is not None:
            raise Refused(409, "a comparison is under way: wait for its end, or stop it", "busy")

    async def _work(self, started: Started, order: dict[str, Any]) -> Started:
        self.started[started.name] = started
        self.uploads.used = [started.upload.path]
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            started.process = await orders.begin(order, started.upload.path.parent)
        except OSError as error:
            del self.started[started.name]
            raise cannot_keep(error, self.folder) from None
        write("comparison", state="started")
        task = asyncio.create_task(self._watch(started, started.process))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return started

    async def _watch(self, started: Started, process: Process) -> None:
        """Until it ends."""
        try:
            answer = await orders.answer_of(process)
            left = started.stopping and process.returncode in EARLY
            if answer.get("code", 0) not in (0, Interrupted.exit_code) and not left:
                started.error = self._refusal(answer).message
        finally:
            started.process, started.stopping, self.uploads.used = None, False, ()
            write("comparison", state="ended", code=process.returncode)

    def _refusal(self, answer: orders.Answer) -> Refused:
        """An error about a file that its reader knows by its name."""
        return orders.refusal(answer, without_places(str(answer["error"]), self.uploads.folder))

    def stop(self, name: str) -> None:
        """Ask a comparison to save and end."""
        found = self.started.get(name)
        if found is None or found.process is None:
            raise Refused(409, "this comparison is not under way on this server", "not_running")
        found.stopping = True
        _end(found.process)

    async def close(self) -> None:
        """Stop what is under way when the server ends."""
        for each in self.started.values():
            if each.process is not None:
                _end(each.process)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LEAVING)


def _end(process: Process) -> None:
    """Ask a process to save and leave."""
    with suppress(ProcessLookupError):
        if process.returncode is None:
            process.terminate()


def _checked(task: str | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The task and the settings of a request: those of the data and of the task alone, and none that names a file."""
    if task is not None:
        discover.tasks.require(task)
    elif settings:
        raise UsageError("settings are those of a task: give one")
    if len(settings) > MOST_SETTINGS or any(
        not isinstance(value, str | int | float | None) or len(str(value)) > LONGEST for value in settings.values()
    ):
        raise UsageError(f"invalid settings: expected at most {MOST_SETTINGS} texts or numbers, each short")
    known = {} if task is None else full_keys(settings, Config, discover.tasks.load(task).Config)
    for key, path in zip(settings, known):
        if is_path(key) or is_path(path) or path.partition(".")[0] not in GROUPS:
            raise UsageError(f"'{shortened(key)}' is no setting of the data or of the task; leave it out")
    return {"task": task, "settings": dict(settings)}
