"""Who does the runs: processes on this machine, or this very process. Another engine only needs `events`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from unrolled.comparison.worker import ENDS, Event, perform
from unrolled.core.errors import Interrupted, OutOfMemory, UnrolledError
from unrolled.core.front import reader

PATIENCE = 60.0  # seconds a worker has to save when it is asked to stop
LOOK = 0.1  # seconds between two looks at whether somebody asks to stop


class Stop(Protocol):
    """Whether somebody has asked to stop."""

    @property
    def asked(self) -> bool: ...


class Engine(Protocol):
    """Does the orders, and tells what happens: each event carries the `folder` of its run.

    The last event of an order is one of ENDS. Once `stop` is asked for, what is running is saved and nothing begins.
    """

    def events(self, orders: Sequence[Event], stop: Stop) -> Iterator[Event]: ...
    def close(self) -> None: ...


class Inline:
    """One after the other in this process: for data that is in memory, and for tests.

    What happens while a run is under way goes to `watch` at once.
    """

    def __init__(self, data: Any, watch: Callable[[Event], None]) -> None:
        self.data, self.watch = data, watch

    def events(self, orders: Sequence[Event], stop: Stop) -> Iterator[Event]:
        for order in orders:
            if stop.asked:
                return
            ends: list[Event] = []
            yield {"event": "begin", "folder": order["folder"]}
            try:
                perform(order, self.data, partial(self._told, order["folder"], ends))
            except Interrupted:
                yield {"event": "stopped", "folder": order["folder"]}
                return
            yield from ends

    def _told(self, folder: str, ends: list[Event], event: Event) -> None:
        tell = ends.append if event["event"] in ENDS else self.watch
        tell({**event, "folder": folder})

    def close(self) -> None: ...


class Worker:
    """One process, which does orders until it is stopped or dies."""

    def __init__(self, threads: int, say: SimpleQueue[tuple[Worker, Event | None]]) -> None:
        environment = os.environ | {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "unrolled.comparison.worker", reader()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
            env=environment, start_new_session=True,
        )  # fmt: skip
        self.order: Event | None = None
        self.errors: list[str] = []
        self.say = say
        self.ears = [threading.Thread(target=ear, daemon=True) for ear in (self._listen, self._read_errors)]
        for ear in self.ears:
            ear.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with suppress(ValueError):  # a kill cuts the last one
                self.say.put((self, json.loads(line)))
        self.process.wait()
        self.say.put((self, None))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors = [*self.errors[-9:], line.strip()]

    def begin(self, order: Event) -> None:
        assert self.process.stdin is not None
        self.order = order
        with suppress(BrokenPipeError):  # it has just ended, which its ears will tell
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()

    def close(self) -> None:
        """Let it end, by itself or after a while by force."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
        for ear in self.ears:
            ear.join()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def why_dead(self) -> Event:
        code = self.process.returncode
        if code == -9:
            why = "its process was killed, most likely because it ran out of memory"
            return {"event": "failed", "why": why, "code": OutOfMemory.exit_code}
        last = f": {self.errors[-1]}" if self.errors else ""
        why = f"its process ended with exit code {code}{last}"
        return {"event": "failed", "why": why, "code": UnrolledError.exit_code}


class Processes:
    """`at_once` processes side by side, each with its share of the processor's threads."""

    def __init__(self, at_once: int, threads: int) -> None:
        self.at_once, self.threads = at_once, threads
        self.workers: list[Worker] = []
        self.dead: list[Worker] = []
        self.stopping: float | None = None  # when the workers were asked to save and leave

    def events(self, orders: Sequence[Event], stop: Stop) -> Iterator[Event]:
        waiting = list(orders)
        heard: SimpleQueue[tuple[Worker, Event | None]] = SimpleQueue()
        for worker in self.workers:
            worker.say = heard
            if worker.process.poll() is not None:  # it ended while it had nothing to do
                self.dead.append(worker)
        self.workers = [worker for worker in self.workers if worker not in self.dead]
        while len(self.workers) < min(self.at_once, len(waiting)):
            self.workers.append(Worker(self.threads, heard))
        for worker in list(self.workers):
            yield from self._next(worker, waiting)
        while any(worker.order for worker in self.workers):
            if stop.asked:
                self._stop()
            try:
                worker, event = heard.get(timeout=LOOK)
            except Empty:
                continue
            if event is None:
                yield from self._died(worker, waiting, heard)
                continue
            assert worker.order is not None
            yield {**event, "folder": worker.order["folder"]}
            if event["event"] in ENDS:
                worker.order = None
                yield from self._next(worker, waiting)

    def _next(self, worker: Worker, waiting: list[Event]) -> Iterator[Event]:
        if waiting and self.stopping is None:
            worker.begin(waiting.pop(0))
            yield {"event": "begin", "folder": worker.order["folder"]}  # type: ignore[index]

    def _died(self, worker: Worker, waiting: list[Event], heard: Any) -> Iterator[Event]:
        """The run of a dead process has failed, or was stopped; a new process takes the orders that are left."""
        if worker in self.workers:
            self.workers.remove(worker)
            self.dead.append(worker)
        if worker.order is None:
            return
        if self.stopping is not None:
            yield {"event": "stopped", "folder": worker.order["folder"]}
            return
        yield {**worker.why_dead(), "folder": worker.order["folder"]}
        if waiting:
            self.workers.append(Worker(self.threads, heard))
            yield from self._next(self.workers[-1], waiting)

    def _stop(self) -> None:
        """Ask the workers to save and leave; one that does not for a long time is ended."""
        if self.stopping is None:
            self.stopping = time.monotonic()
            for worker in self.workers:
                worker.process.terminate()
        elif time.monotonic() - self.stopping > PATIENCE:
            for worker in self.workers:
                worker.process.kill()

    def abandon(self) -> None:
        """End the workers at once, with nothing saved: what they do is somebody else's."""
        for worker in self.workers:
            worker.process.kill()

    def close(self) -> None:
        for worker in [*self.workers, *self.dead]:
            worker.close()
        self.workers, self.dead = [], []
