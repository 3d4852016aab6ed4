"""Engines where a process ends at a moment at which nobody counts on it; small processes stand for workers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from unrolled.comparison import engine as engines
from unrolled.comparison.engine import Processes, Worker
from unrolled.comparison.ray_engine import RayEngine
from unrolled.comparison.runner import Runner
from unrolled.core.errors import UnrolledError
from unrolled.training.signals import StopFlag

ANSWERS = 'import sys\nfor line in sys.stdin: print(\'{"event": "done"}\', flush=True)'


@pytest.fixture(autouse=True)
def answering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers whose runs are done at once."""

    def start(*_: object, **given: Any) -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-c", ANSWERS], **given)

    monkeypatch.setattr(engines, "subprocess", type("other", (), {**vars(subprocess), "Popen": start}))


def ends(engine: Any, *runs: str) -> list[tuple[str, str]]:
    found = engine.events([{"folder": run} for run in runs], StopFlag())
    return [(event["folder"], event["event"]) for event in found if event["event"] != "begin"]


def end(worker: Worker) -> None:
    worker.process.kill()
    worker.process.wait()


def test_a_worker_that_ended_while_it_had_nothing_to_do_is_replaced() -> None:
    """As where a process that joins waits for others, and memory runs out meanwhile."""
    engine = Processes(at_once=2, threads=1)
    assert sorted(ends(engine, "one", "two")) == [("one", "done"), ("two", "done")]
    end(engine.workers[0])
    assert sorted(ends(engine, "three", "four")) == [("four", "done"), ("three", "done")]
    engine.close()


def test_an_order_to_a_worker_that_has_just_ended_is_a_run_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Processes(at_once=1, threads=1)
    begin = Worker.begin

    def too_late(worker: Worker, order: dict[str, Any]) -> None:
        if order["folder"] == "one":
            end(worker)
        begin(worker, order)

    monkeypatch.setattr(Worker, "begin", too_late)
    assert ends(engine, "one", "two") == [("one", "failed"), ("two", "done")]
    engine.close()


def test_the_end_of_an_earlier_worker_is_not_that_of_the_next(tmp_path: Path) -> None:
    runner = Runner(1, str(tmp_path), "nothing", "python", str(Path.cwd()))
    order = {"folder": "one", "out": str(tmp_path / "one")}
    runner.begin(order, {}, 0.0)
    assert [event["event"] for event in runner.heard().events] == ["done"]
    earlier = runner.worker
    assert earlier is not None
    end(earlier)
    for ear in earlier.ears:
        ear.join()
    runner.begin(order, {}, 0.0)
    events = runner.heard().events or runner.heard().events
    assert [event["event"] for event in events] == ["done"] and runner.worker is not earlier
    runner.close()


class Died(Exception):
    """As of an actor."""


class Cluster:
    """Ray, as far as an engine asks for it: actors that there are no cores for, or that end as they begin."""

    def __init__(self, dies: bool) -> None:
        self.dies, self.hired, self.asked = dies, 0, list[str]()
        self.killed: list[Any] = []
        self.exceptions = SimpleNamespace(RayError=Died, RayActorError=Died, RayTaskError=KeyError)
        self.ray = self

    def remote(self, *_: object) -> Any:
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=self._hire))

    def _hire(self, *_: object) -> Any:
        self.hired += 1
        return SimpleNamespace(facts=self._call("facts"), close=self._call("close"), stop=self._call("stop"))

    def _call(self, name: str) -> Any:
        def remote() -> object:
            self.asked.append(name)
            return object()

        return SimpleNamespace(remote=remote)

    def wait(self, refs: Sequence[object], **_: object) -> tuple[list[object], list[object]]:
        return (list(refs[:1]) if self.dies else []), []

    def get(self, _ref: object, timeout: float | None = None) -> Any:
        raise Died("The actor died because of an error\n  in its creation\nOSError: no space left on device")

    def kill(self, actor: Any) -> None:
        self.killed.append(actor)


def test_actors_that_end_before_they_begin_are_not_replaced_forever(tmp_path: Path) -> None:
    cluster = Cluster(dies=True)
    engine = RayEngine(cluster, tmp_path, 2, 1)  # type: ignore[arg-type]
    with pytest.raises(UnrolledError, match="end before their first run: OSError: no space left on device"):
        ends(engine, "one", "two")
    engine.close()
    assert cluster.hired < 10 and len(cluster.killed) == cluster.hired


def test_actors_that_wait_for_a_core_are_not_asked_to_leave(tmp_path: Path) -> None:
    """Nobody would answer."""
    cluster, flag = Cluster(dies=False), StopFlag()
    engine = RayEngine(cluster, tmp_path, 2, 1)  # type: ignore[arg-type]
    flag.asked = True
    assert list(engine.events([{"folder": "one"}], flag)) == []
    engine.close()
    assert cluster.asked == ["facts"] and len(cluster.killed) == 1
    assert not list(tmp_path.iterdir())
