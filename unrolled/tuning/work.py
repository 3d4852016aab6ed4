"""A search being done: batches of trials, each judged at two rungs, of which the better half is trained to the end.

    at 15 % and 45 % of its length    a trial is judged on all validation data; it continues if it is not behind the
                                      better half of all trials that were judged there so far, or nearly as good

The trials of a batch are proposed together and judged together, so that a search in steps is the same, trial by trial,
whatever is done first by whichever process, and after any interruption.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unrolled.comparison.engine import Engine
from unrolled.comparison.files import write_plan
from unrolled.comparison.orders import Given, Order, is_done, order_of
from unrolled.comparison.plan import Job, Plan
from unrolled.comparison.view import View
from unrolled.comparison.worker import ENDS
from unrolled.core.errors import CannotWrite, Interrupted, UnrolledError
from unrolled.runs.results import read_result
from unrolled.runs.storage import atomic
from unrolled.runs.storage.directory import RunDirectory
from unrolled.runs.trust import named_beside, resume_command
from unrolled.training import rungs
from unrolled.training.signals import StopFlag
from unrolled.tuning.files import Search, write_search
from unrolled.tuning.study import Study, Trial

RUNGS = (0.15, 0.45)  # of a trial, when it is judged; until then the learning rate of a time budget is flat
SURE = 4  # trials that were judged at a rung before one is stopped there
NEAR = 0.01  # of a score: what is closer to the cut continues too
SHOWN = 100  # trials, at most, that are shown as waiting
MARGIN = 1.2  # times the length of a trial must be left for another batch


def continues(score: float, scores: Sequence[float]) -> bool:
    """Whether a trial continues behind a rung where these scores, its own among them, are known; smaller is better.

    >>> [continues(score, [1.0, 2.0, 3.0, 4.0]) for score in (1.0, 2.0, 2.01, 3.0)], continues(9.0, [1.0, 9.0])
    ([True, True, True, False], True)
    """
    if len(scores) < SURE:
        return True
    last = sorted(scores)[(len(scores) + 1) // 2 - 1]
    return score <= last + NEAR * abs(last)


class Searching:
    """A search being done."""

    def __init__(
        self, folder: Path, search: Search, plan: Plan, given: Given, engine: Engine, view: View, started: float
    ) -> None:
        self.folder, self.search, self.plan, self.given = folder, search, plan, given
        self.engine, self.view, self.started = engine, view, started - search.used
        self.study = Study(folder, search.space, search.asked.seed, search.first)
        self.stopped = False

    def all(self) -> None:
        """Trials until there are enough of them, or the time is used up."""
        names = [f"trial-{number:03d}" for number in range(min(self.search.trials, SHOWN))]
        self.view.begin(self.plan.model_copy(update={"jobs": [self.job(name, {}) for name in names]}), self.folder)
        with StopFlag() as flag:
            try:
                while not (self.stopped or flag.asked) and (batch := self._batch()):
                    self._do(batch, flag)
                    self.search = self.search.model_copy(update={"used": round(time.monotonic() - self.started, 1)})
                    write_search(self.folder, self.search)
            finally:
                self.engine.close()
                self.view.end()
        if self.stopped or flag.asked:
            raise self.interrupted()

    def interrupted(self) -> Interrupted:
        named = {"own_file": self.given.own_file, **named_beside(self.plan.given)}
        again = resume_command("tune", self.folder, self.plan.data, named)
        return Interrupted(f"stopped and saved; resume with: {again}")

    def job(self, folder: str, settings: dict[str, Any]) -> Job:
        """The run of a trial."""
        model, seed = self.search.model, self.search.asked.seed
        return Job(folder=folder, label=folder, kind="model", model=model, seed=seed, settings=settings)

    def _batch(self) -> list[int]:
        """The trials to do next: those of a batch that is under way, or of the next one while there is time for it."""
        known, n = self.study.trials(), self.search.at_once
        running = [each.number for each in known if each.state == "running"]
        first = min(running) // n * n if running else -(-len(known) // n) * n
        end = min(first + n, self.search.trials)
        if not running and (first >= end or not self._has_time(first)):
            return []
        for _ in range(len(known), end):
            self.study.ask()
        return list(range(first, end))

    def _has_time(self, trials: int) -> bool:
        """Whether another batch may begin behind so many trials."""
        if self.search.seconds is None or not trials:
            return True
        left = (self.search.asked.time or 0.0) - (time.monotonic() - self.started)
        return left > MARGIN * self.search.seconds

    def _do(self, numbers: Sequence[int], flag: StopFlag) -> None:
        """A batch of trials, rung by rung."""
        for rung in range(len(RUNGS)):
            self._train([each for each in self._open(numbers) if rung not in each.scores], rung, flag)
            if self.stopped:
                return
            scores = [each.scores[rung] for each in self.study.trials() if rung in each.scores]
            for trial in self._open(numbers):
                if not continues(trial.scores[rung], scores):
                    self.study.tell(trial.number, None)
                    atomic.remove_directory(self.folder / trial.folder / "checkpoints")  # it is not continued
                    self.view.say(f"{trial.folder}: stopped, {trial.scores[rung]:.4g} is not in the better half")
        self._train(self._open(numbers), None, flag)

    def _open(self, numbers: Sequence[int]) -> list[Trial]:
        return [each for each in self.study.trials() if each.number in numbers and each.state == "running"]

    def _train(self, trials: Sequence[Trial], rung: int | None, flag: StopFlag) -> None:
        """Train these trials up to a rung, or to the end, and keep what they scored."""
        by_folder = {trial.folder: trial for trial in trials}
        orders = []
        for trial in trials:
            if is_done(self.folder, self.job(trial.folder, {})):
                self._done(trial)
            else:
                orders.append(self._order(trial, rung))
        for event in self.engine.events(orders, flag):
            trial, kind = by_folder[event["folder"]], event["event"]
            if kind == "failed" and event["code"] == CannotWrite.exit_code:
                raise CannotWrite(f"{event['folder']}: {event['why']}; {self.interrupted()}")
            if kind == "paused":
                self._judged(trial, rung)
            elif kind == "done":
                self._done(trial)
            elif kind == "stopped":
                self.stopped = True
            elif kind in ENDS:
                self.study.tell(trial.number, None, event.get("why") or "there was no time for a training step")
            self.view.event(event)
        self.stopped = self.stopped or flag.asked

    def _judged(self, trial: Trial, rung: int | None) -> None:
        at = rungs.reached(self.folder / trial.folder)
        if at is None or rung is None:
            self.study.tell(trial.number, None, "its score at a rung cannot be read")
        else:
            self.study.report(trial.number, rung, at.score)

    def _done(self, trial: Trial) -> None:
        """The value of a trial: what is monitored in training, on all validation data."""
        try:
            result = read_result(RunDirectory.open(self.folder / trial.folder))
            value = result["valid"][result["criterion"]]
        except (UnrolledError, KeyError, TypeError) as error:
            self.study.tell(trial.number, None, f"its result cannot be read ({error})")
            return
        jobs = {job.folder: job for job in self.plan.jobs}
        jobs[trial.folder] = self.job(trial.folder, dict(trial.settings))
        self.plan = self.plan.model_copy(update={"jobs": [jobs[folder] for folder in sorted(jobs)]})
        write_plan(self.folder, self.plan)  # first: a trial that is open still is entered again after a kill
        self.study.tell(trial.number, value)

    def _order(self, trial: Trial, rung: int | None) -> Order:
        job = self.job(trial.folder, dict(trial.settings))
        order = order_of(self.folder, self.plan, self.given, job)
        if self.search.steps is not None:
            if rung is not None:
                order["rung"] = {"steps": max(1, round(RUNGS[rung] * self.search.steps))}
            return order
        assert self.search.seconds is not None
        until = None if rung is None else round(RUNGS[rung] * self.search.seconds, 2)
        order["rung"] = {"time": self.search.seconds, "until": until, "end": None, "preparing": 0.0}
        return order
