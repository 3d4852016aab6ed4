"""The runs of a server: each is loaded when it is first asked for, and has a thread of its own."""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from unrolled.core.errors import UnrolledError, UsageError, nearest
from unrolled.runs.run import Run, load, own_file_for
from unrolled.serve.counted import Counted
from unrolled.serve.found import Place
from unrolled.serve.job import Job
from unrolled.serve.limits import Limits
from unrolled.serve.log import write
from unrolled.serve.refused import Refused, busy
from unrolled.serve.worker import Worker

_loading = threading.Lock()  # what runs declare is known to the whole process


class Hosted:
    """Runs by name."""

    def __init__(
        self, places: Mapping[str, Place], limits: Limits, counted: Counted, own_file: str | None,
        weights: str | None = None,
    ) -> None:  # fmt: skip
        self.places, self.limits, self.counted = dict(places), limits, counted
        self.own_file, self.weights = own_file, weights
        self.look: Callable[[], Mapping[str, Place]] | None = None  # for runs that have come since, where any may
        self._workers: OrderedDict[str, Worker] = OrderedDict()  # the one that was used last is the last
        self.held: Callable[[str], int] = lambda _: 0  # sessions of a run, which is not put away meanwhile

    def __len__(self) -> int:
        return len(self._workers)

    def refresh(self) -> None:
        """Take in runs that have come since."""
        if self.look is not None:
            with suppress(UnrolledError):  # two of one name: what was found before stays
                self.places = dict(self.look())

    def require(self, name: object) -> Place:
        if name not in self.places:
            self.refresh()
        if not isinstance(name, str) or name not in self.places:
            asked = str(name)[:60]
            raise Refused(404, f"there is no run '{asked}'; {nearest(asked, self.places)}", "model_not_found")
        return self.places[name]

    def worker(self, name: str) -> Worker:
        """Called in the loop of the server alone."""
        place = self.require(name)
        if name in self._workers and self._is_over(self._workers[name], place):
            self._workers.pop(name).close()
        if name not in self._workers:
            self._make_room(place)
            worker = Worker(place, partial(self._load, place), self.limits.waiting)
            worker.unexpected = lambda: self.counted.add("unrolled_unexpected_total")
            self._workers[name] = worker
        self._workers.move_to_end(name)
        return self._workers[name]

    def _is_over(self, worker: Worker, place: Place) -> bool:
        """Whether its thread has ended, or what it has loaded is no longer what is there and nobody uses it."""
        if worker.ended or worker.jobs or self.held(worker.name):
            return worker.ended
        return worker.place.path != place.path or place.version() not in ((), worker.version)

    def _make_room(self, place: Place) -> None:
        needed, most = place.n_bytes(), self.limits.memory
        if needed > most:
            found = f"the weights of the run '{place.name}' have {needed:,} bytes"
            raise Refused(413, f"{found}: this server keeps at most {most:,} in memory", "too_large")
        while len(self._workers) >= self.limits.loaded or needed + self._held() > most:
            idle = next((n for n, each in self._workers.items() if each.jobs == 0 and not self.held(n)), None)
            if idle is None:
                raise busy(f"{len(self._workers)} other runs are in use, as much as this server keeps in memory")
            self._workers.pop(idle).close()

    def _held(self) -> int:
        """Bytes of the weights in memory, or that soon will be."""
        return sum(max(each.n_bytes, each.file_bytes) for each in self._workers.values())

    def _load(self, place: Place) -> Run:
        with _loading:
            run = load(place.path, own_file=own_file_for(place.path, self.own_file))
            told = {} if self.weights is None else {"weights": _narrowed(run, self.weights)}
            _set_apart()
        write("loaded", run=place.name, **told)
        return run

    def ask(self, name: str, start: Callable[[Run], Iterator[Any]], seconds: float | None = None) -> Job:
        """Something that is done with a run; what it gives is awaited."""
        return self.submit(name, Job(start, self.limits.seconds if seconds is None else seconds))

    def submit(self, name: str, job: Any) -> Any:
        self.worker(name).submit(job)
        return job

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()


def _narrowed(run: Run, weights: str) -> str:
    """What rounding the weights of a run comes to; one that has none to round stays as it is, and the log says why."""
    try:
        return run.narrow(weights)
    except UsageError as error:
        return str(error)


def _set_apart() -> None:
    """Let the garbage collector pass over what is in memory now, which stays for long: what requests leave behind is
    then found soon, and without a pause in which everything is looked at."""
    gc.unfreeze()  # runs that were put away since
    gc.collect()
    gc.freeze()
