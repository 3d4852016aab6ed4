"""Rungs: a run that is trained up to some time, judged on validation data, and perhaps continued with more time.

    with until(20.0):            training pauses when the run has used 20 s of its time: a checkpoint, as after Ctrl-C,
        train(...)               its score on validation data in rung.json, and Paused
    extend(path, seconds=90.0)   the budget that it has from now on; `train(resume=path)` continues
    with until(steps=300):       the same after 300 of the steps of a run that has a number of them, which stays

Before a rung the learning rate stays flat behind its warm-up: how long the run will be is not decided yet. The last
time it is continued without `until`, and cools down as every run does under a time budget (schedule.py): a trapezoid
falls over the last half of what the run has in all.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from pydantic import Field

from unrolled.core.config import Record
from unrolled.core.errors import UnrolledError
from unrolled.core.task import Ledger, Model, Task
from unrolled.runs.config import RunConfig
from unrolled.runs.run import config_in
from unrolled.runs.storage.directory import RunDirectory
from unrolled.training import told
from unrolled.training.progress import Quiet
from unrolled.training.schedule import Plan, settled_until

FILE = "rung.json"

_seconds: ContextVar[float | None] = ContextVar("rung", default=None)
_steps: ContextVar[int | None] = ContextVar("rung of steps", default=None)


class Paused(UnrolledError):
    """A run has reached its rung and is saved; it can be continued (exit 75)."""

    exit_code = 75


class Reached(Record):
    """Where a run stood at a rung."""

    seconds: float = Field(ge=0)
    """of its time, used so far"""
    steps: int = Field(ge=0)
    criterion: str
    score: float
    """that of its best weights on all validation data; smaller is better"""
    units: list[tuple[float, float]] = []
    """what the score is made of: total and count of each unit; a count of 0 where it was not measured"""
    last: bool = False
    """whether its budget is final since: it will not be judged again"""


@contextmanager
def until(seconds: float | None = None, steps: int | None = None) -> Iterator[None]:
    """What is trained pauses when its run has used so many seconds, or has made so many steps; None: it does not."""
    tokens = _seconds.set(seconds), _steps.set(steps)
    try:
        yield
    finally:
        _seconds.reset(tokens[0])
        _steps.reset(tokens[1])


def current() -> float | None:
    """The seconds at which the run that is trained now is to pause."""
    return _seconds.get()


class UpTo(Plan):
    """The plan of a run up to a step: what is saved of it is the plan of the whole run."""

    def __init__(self, whole: Plan, until: int) -> None:
        self.optimiser, self.steps, self.horizon, self.time = whole.optimiser, whole.steps, whole.horizon, None
        self.until = until

    def expected(self, step: int, elapsed: float, left: float) -> float | None:
        return self.until

    def settle(self, step: int, elapsed: float, left: float) -> None: ...

    def close(self, step: int) -> None: ...

    def done(self, step: int, left: float) -> bool:
        return step >= self.until


class Held(Plan):
    """The plan of a run up to a rung: flat, with the number of its steps left open."""

    def __init__(self, whole: Plan, seconds: float, used: Callable[[], float]) -> None:
        self.optimiser, self.steps, self.horizon, self.time = whole.optimiser, whole.steps, whole.horizon, whole.time
        self.seconds, self.used = seconds, used

    def expected(self, step: int, elapsed: float, left: float) -> float | None:
        return step * self.seconds / max(self.used(), 1e-9) if step else None

    def settle(self, step: int, elapsed: float, left: float) -> None: ...

    def close(self, step: int) -> None: ...

    def done(self, step: int, left: float) -> bool:
        return self.used() >= self.seconds


def can_wait(config: RunConfig) -> bool:
    """Whether a run can be judged before its length is known: its rate is flat until then, as in a shorter run."""
    return math.isinf(settled_until(config.optimiser, math.inf))


def held(plan: Plan, used: Callable[[], float]) -> Plan:
    """The plan of a run of which so many seconds are used; up to a rung where one is asked for."""
    seconds, steps = current(), _steps.get()
    if steps is not None and plan.steps is not None and steps < plan.steps:
        return UpTo(plan, steps)
    return plan if seconds is None or plan.time is None else Held(plan, seconds, used)


def pause(run: RunDirectory, plan: Plan, task: Task, model: Model, steps: int, used: Callable[[], float]) -> None:
    """Where a rung was reached: judge the best weights, keep that, and leave by Paused. Otherwise nothing."""
    if not isinstance(plan, Held | UpTo) or not plan.done(steps, 0.0):
        return
    seconds = used()
    ledger, name = Ledger(task.ranks_by.name), task.criterion
    score = task.evaluate(model, "valid", limit=task.size("valid"), ledger=ledger)[name]  # with a limit no texts
    found, finite = ledger.statistics.get(name), math.isfinite(score)
    units = found.nan_to_num(0.0).tolist() if finite and found is not None and found.shape[1] == 2 else []
    score = score if finite else sys.float_info.max
    reached = Reached(seconds=round(seconds, 2), steps=steps, criterion=name, score=score, units=units)
    run.write_json(FILE, reached.model_dump(mode="json"))
    raise Paused(f"{run.path}: paused after {seconds:.0f} s and {steps} steps")


def reached(path: Path) -> Reached | None:
    """Where a run stood at its last rung; None: it has not reached any."""
    if not (path / FILE).exists():
        return None
    try:
        return Reached.parse(RunDirectory.open(path).read_json(FILE))
    except UnrolledError:
        return None


def seconds(path: Path) -> float:
    """Seconds of its time that a run had used at its last rung."""
    at = reached(path)
    return 0.0 if at is None else at.seconds


def extend(path: Path, seconds: float, why: str | None = None) -> None:
    """Give a run that is paused so many seconds in all; with a reason, which the run keeps, they are final."""
    at, run = reached(path), RunDirectory.open(path)
    if at is not None and at.last:
        return
    if why is not None and why not in told.kept(run):
        told.add(run, [why], Quiet())
    run.write_config(config_in(run).updated({"budget.time": round(seconds, 2)}).model_dump(mode="json"))
    if why is not None and at is not None:
        run.write_json(FILE, at.model_copy(update={"last": True}).model_dump(mode="json"))


def end(path: Path, why: str) -> None:
    """Give a run no more time than it has used: resumed, it is finished with the weights that it has."""
    extend(path, max(seconds(path), 0.01), why)
