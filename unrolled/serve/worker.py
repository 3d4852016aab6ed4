"""The thread of a run: all that is asked of it is done there, a little of each request in turn."""

from __future__ import annotations

import queue
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from unrolled.core.opening import closed
from unrolled.core.stopping import Stopped, stopped_by
from unrolled.decode.together import Row, Together
from unrolled.engine.stepper import stepped
from unrolled.runs.run import Run
from unrolled.serve.found import Place
from unrolled.serve.job import Job, Writing
from unrolled.serve.log import write
from unrolled.serve.refused import Refused, busy, refusal_of, too_late

ROWS = 64  # texts that are written at the same time


class Worker:
    """`submit(job)` from any thread; `open_run` is called in the worker's own, when the first job arrives."""

    def __init__(self, place: Place, open_run: Callable[[], Run], waiting: int) -> None:
        self.place, self.name, self._open, self._waiting = place, place.name, open_run, waiting
        self.version, self.file_bytes = place.version(), place.n_bytes()
        self.run: Run | None = None
        self.n_bytes = 0  # of the weights
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._active: list[tuple[Job, Iterator[Any]]] = []
        self._pending: list[tuple[Writing, int]] = []  # rows that have not joined
        self._together = Together(stepped)
        self._owner: dict[int, tuple[Writing, int]] = {}  # by the id of a row
        self._count, self._lock = 0, threading.Lock()
        self.ended = False
        self.unexpected: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._work, name=f"run {place.name}", daemon=True)
        self._thread.start()

    @property
    def jobs(self) -> int:
        """Requests that wait or are worked on."""
        return self._count

    def submit(self, job: Job) -> None:
        with self._lock:
            if self.ended or self._count >= self._waiting:
                raise busy(f"{self._count} requests for the run '{self.name}' are waiting")
            self._count += 1
            self._queue.put(job)

    def close(self, wait: bool = False) -> None:
        """End the thread; jobs that are left are refused."""
        self._queue.put(None)
        if wait:
            self._thread.join(10)

    # ---- in the thread

    def _work(self) -> None:
        try:
            self._look_after()
        except Exception as error:  # the next request for the run starts another thread
            self._told(error)
        finally:
            with self._lock:
                self.ended = True
            self._refuse_all()

    def _look_after(self) -> None:
        while True:
            idle = not self._active and not self._pending and not len(self._together)
            try:
                job = self._queue.get(block=idle)
            except queue.Empty:
                pass
            else:
                if job is None:
                    return
                self._begin(job)
                continue
            self._advance()
            self._join()
            self._tick()

    def _begin(self, job: Job) -> None:
        if job.unwanted:
            return self._end(job, Stopped())
        try:
            if self.run is None:
                self.run = self._open()
                self.n_bytes = sum(weight.nbytes for weight in self.run.model.state_dict().values())
            if isinstance(job, Writing):
                with closed():
                    job.rows = job.begin(self.run)
                job.writing = set(range(len(job.rows)))
                self._pending += [(job, i) for i in range(len(job.rows))]
                if not job.rows:
                    self._end(job)
            else:
                self._active.append((job, job.start(self.run)))
        except Exception as error:
            self._end(job, error)

    def _advance(self) -> None:
        """One more result of every job."""
        for job, results in list(self._active):
            try:
                if job.unwanted:
                    raise Stopped
                with closed(), stopped_by(lambda job=job: job.unwanted):  # type: ignore[misc]
                    job.put(next(results))
                continue
            except StopIteration:
                self._end(job)
            except Exception as error:
                self._end(job, error)
            self._active.remove((job, results))

    def _join(self) -> None:
        """The next row that waits to be written."""
        while self._pending and len(self._together) < ROWS:
            job, i = self._pending.pop(0)
            if i not in job.writing:
                continue
            if job.unwanted:
                self._drop(job, None)
                continue
            row = job.rows[i]
            try:
                y = self._together.join(row)
                self._owner[id(row)] = (job, i)
                job.put((i, job.read(i, y)))
            except Exception as error:
                self._drop(job, error)
                continue
            if not row.left:
                self._together.leave([row])
                self.leave(row)
            return

    def _tick(self) -> None:
        for job in {id(job): job for job, _ in self._owner.values() if job.unwanted}.values():
            self._drop(job, None)
        if not len(self._together):
            return
        try:
            told = self._together.tick()
        except Exception as error:
            for job in {id(job): job for job, _ in self._owner.values()}.values():
                self._drop(job, error)
            return
        for row, token in told:
            if id(row) not in self._owner:  # another text of the same job could not be continued
                continue
            job, i = self._owner[id(row)]
            if isinstance(token, Exception):
                self._drop(job, token)
                continue
            job.put((i, token))
            if token.last:
                self.leave(row)

    def leave(self, row: Row) -> None:
        """A row that has ended."""
        job, i = self._owner.pop(id(row))
        job.writing.discard(i)
        if not job.writing:
            self._end(job)

    def _drop(self, job: Writing, error: BaseException | None) -> None:
        """End a job whose texts are not complete."""
        self._together.leave([row for row in job.rows if id(row) in self._owner])
        for row in job.rows:
            self._owner.pop(id(row), None)
        job.writing.clear()
        self._end(job, error or Stopped())

    def _end(self, job: Job, error: BaseException | None = None) -> None:
        with self._lock:
            self._count -= 1
        if isinstance(error, Stopped):
            error = too_late(job.seconds)
        job.end(None if error is None else self._told(error))

    def _told(self, error: BaseException) -> Refused:
        """The error that a client gets; what the library does not explain is in the log."""
        known = refusal_of(error, [self.place.path.resolve(), self.place.path.absolute(), self.place.path], self.name)
        if known is not None:
            return known
        self.unexpected()
        write("unexpected", run=self.name, error=type(error).__name__,
              traceback="".join(traceback.format_exception(error))[-4000:])  # fmt: skip
        return Refused(500, f"internal error, please report it: {type(error).__name__}")

    def _refuse_all(self) -> None:
        gone = Refused(503, "the server is ending")
        for job in {id(job): job for job, _ in [*self._owner.values(), *self._pending]}.values():
            job.end(gone)
        for other, _ in self._active:
            other.end(gone)
        while not self._queue.empty():
            left = self._queue.get()
            if left is not None:
                left.end(gone)
