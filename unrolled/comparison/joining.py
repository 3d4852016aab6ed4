"""A planned comparison done by processes that come and go: each takes the next run that nobody has, until all are done.

    unrolled compare DATA --plan-only -o DIR     the plan
    unrolled compare DATA --join DIR             as often as wanted, on every machine that shares the directory
    unrolled compare --collect DIR               the table and the report, at any time

A run begins when those have ended that it needs: models after the baselines beside which they are set, what joins folds
after the folds, the ensemble last. Every run has its share of a time budget, however late it begins.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from unrolled.comparison.budget import RUN
from unrolled.comparison.claims import HOPELESS, Claims, Ended, Found, Held, kept
from unrolled.comparison.engine import Processes
from unrolled.comparison.failures import Failure, complete
from unrolled.comparison.files import PLAN, write_table
from unrolled.comparison.orders import Given, Order, is_done, order_of
from unrolled.comparison.plan import ENSEMBLE, Job, Joins, Plan, repeat_command
from unrolled.comparison.table import make_table
from unrolled.comparison.view import View
from unrolled.comparison.worker import ENDS, LEAST
from unrolled.core.errors import CannotWrite, DataError, Interrupted, UsageError, listed
from unrolled.core.front import invocation, option
from unrolled.core.opening import shortened
from unrolled.data.given_splits import names_of_sources
from unrolled.report.page import write_report
from unrolled.runs.guess import prepared_task
from unrolled.runs.storage.locks import LOCK, in_use, is_idle
from unrolled.runs.trust import named_beside, opening, resume_command, saved
from unrolled.training.api import versions
from unrolled.training.signals import StopFlag

POLL = 1.0  # seconds between two looks at what others do
LATE = 100.0  # shares after which a run would have to be done by the clock, which is not looked at


def planned(plan: Plan, data: Any) -> Plan:
    """A plan whose runs several processes may take, each with its share of the time and with this very data."""
    notes, asked, share = plan.notes, plan.asked, plan.share
    if plan.may_race:
        why = "the processes that take its runs do not wait for one another"
        notes, asked = [*notes, f"no race, every run has the same time: {why}"], asked.updated({"match": "time"})
    if asked.steps is None and plan.n_trained:
        left = asked.time - (plan.aside or 0.0)
        share = round(max(LEAST, left / plan.rounds - RUN), 2)
    joins = Joins(versions=versions(), data=_fingerprint(plan, data))
    return plan.model_copy(update={"asked": asked, "notes": notes, "share": share, "joins": joins})


def _fingerprint(plan: Plan, data: Any) -> str:
    """What identifies the data as this process reads it; its runs find it prepared."""
    return str(prepared_task(plan.task, plan.settings, data).facts()["fingerprint"])


def require_same_data(folder: Path, plan: Plan, data: Any) -> None:
    """That this process has the data that was planned with: all rows of a table are of the same."""
    if plan.joins is None:
        return
    with saved(folder / PLAN):
        found = _fingerprint(plan, data)
    if plan.joins.data != found:
        name = names_of_sources(data)["train"]
        raise DataError(
            f"{shortened(name)}: not the data that {folder} was planned with ({shortened(plan.data)}), or it has "
            "changed since; join with the same files, or plan again"
        )


def join_command(folder: Path, plan: Plan) -> str:
    """The command of each process that joins."""
    return resume_command("compare", folder, plan.data, _named(plan), by="join")


def _named(plan: Plan) -> dict[str, Any]:
    return {"own_file": plan.own_file, **named_beside(plan.given)}


def require_planned(folder: Path, plan: Plan) -> Joins:
    """That the runs of a comparison may be taken by this process."""
    if plan.joins is None:
        again = resume_command("compare", folder, plan.data, _named(plan))
        raise UsageError(
            f"{folder}: this comparison was not planned with {option('plan_only', True)}; resume it with {again}"
        )
    before, now = plan.joins.versions.get("unrolled"), versions()["unrolled"]
    if before != now:
        raise UsageError(f"{folder}: planned with unrolled {before}, this is {now}; join it with the same version")
    return plan.joins


def how_to_join(folder: Path, plan: Plan, left: int) -> str:
    """What is left to do of a planned comparison."""
    collected = invocation("compare", {"collect": str(folder)})
    return f"{left} of {len(plan.jobs)} runs are left: {join_command(folder, plan)}; the table: {collected}"


def require_left(folder: Path, plan: Plan) -> None:
    """That no process has a run of a comparison that one process is to resume."""
    if plan.joins is None:
        return
    claims = Claims(folder, plan.joins.lease)
    look = claims.look()
    open_ = [job.folder for job in plan.jobs if _is_open(claims, job.folder, look.get(job.folder))]
    if open_:
        raise UsageError(
            f"{folder}: {listed(open_[:3])} belongs to {claims.owner(open_[0], look[open_[0]])}; wait for it, or take "
            f"over what is left with {join_command(folder, plan)}"
        )


def _is_open(claims: Claims, run: str, last: Found | None) -> bool:
    return last is not None and last.ended is None and claims.outcome(run, last) is None


def before(plan: Plan, job: Job) -> list[Job]:
    """The runs that must have ended before one begins."""
    if job.kind == ENSEMBLE:
        return [each for each in plan.jobs if each is not job]
    first = [each for each in plan.jobs if each.folder in job.members]
    if job.kind == "baseline":
        return first
    return first + [each for each in plan.jobs if each.kind == "baseline" and each.fold == job.fold]


class _Either:
    """Asked to stop by a signal, or because the run belongs to another process now."""

    def __init__(self, flag: StopFlag, held: Held) -> None:
        self.flag, self.held = flag, held

    @property
    def asked(self) -> bool:
        return self.flag.asked or self.held.lost


class Joining:
    """A process that takes runs of a planned comparison."""

    def __init__(
        self, folder: Path, plan: Plan, given: Given, view: View, started: float, engine: Callable[[], Processes]
    ) -> None:
        joins = require_planned(folder, plan)
        self.folder, self.plan, self.given, self.view, self.started = folder, plan, given, view, started
        self.claims = Claims(folder, joins.lease)
        self.make_engine = engine
        self.engine = engine()
        self.ended: dict[str, Ended] = {job.folder: Ended(event="untrained") for job in plan.jobs if job.needs}
        self.rests: list[float] = []
        self.told: set[tuple[str, int]] = set()  # claims of which was said that nobody takes them over
        self.done = 0

    def all(self) -> int:
        """Take runs until all have ended; how many this process did."""
        assert self.plan.joins is not None
        self.view.begin(self.plan, self.folder, self.started)
        now = versions()
        for name, was in self.plan.joins.versions.items():
            if now[name] != was:
                self.view.say(f"note: planned with {name} {was}, this is {now[name]}; last digits may differ")
        with StopFlag() as flag:
            try:
                while not flag.asked and (left := self._left()):
                    free = self._free(left) if is_idle(self.folder) else iter(())  # one process resumes it, or collects
                    if (job := next(free, None)) is None:
                        self._tell_silent(left)
                        time.sleep(min(POLL, self.claims.lease / 4))
                    elif (held := self.claims.take(job.folder, left[job.folder])) is not None:
                        self._do(job, held, flag)
            finally:
                self.engine.close()
                self.view.end()
        if flag.asked:
            raise Interrupted(f"stopped; its run is free for others, join again with: {self._again()}")
        return self.done

    def _again(self) -> str:
        return join_command(self.folder, self.plan)

    def _left(self) -> dict[str, Found | None]:
        """The runs that have not ended, with the last claim on each."""
        look = self.claims.look()
        for job in self.plan.jobs:
            if job.folder in self.ended:
                continue
            if (end := self.claims.outcome(job.folder, look.get(job.folder))) is not None:
                self.ended[job.folder] = end
                self.view.event({**end.model_dump(exclude_defaults=True), "folder": job.folder})
        return {job.folder: look.get(job.folder) for job in self.plan.jobs if job.folder not in self.ended}

    def _free(self, left: Mapping[str, Found | None]) -> Iterator[Job]:
        """The runs that may begin now, in the order of the plan."""
        for job in self.plan.jobs:
            if job.folder in left and all(each.folder in self.ended for each in before(self.plan, job)):
                last = left[job.folder]
                if self.claims.is_free(job.folder, last):
                    yield job

    def _tell_silent(self, left: Mapping[str, Found | None]) -> None:
        """Say of runs once why nobody takes them over, though nothing was heard of their processes for long."""
        for run, number in self.claims.silent.items() - self.told:
            self.told.add((run, number))
            last = left.get(run)
            if last is not None and last.number == number and last.ended is None:
                self.view.say(
                    f"{run}: {self.claims.owner(run, last)} has not been heard of for {self.claims.lease:.0f} s, but "
                    "holds the lock of the run: continue or end that process; if its machine is gone, remove "
                    f"{self.folder / run / LOCK}"
                )

    def _do(self, job: Job, held: Held, flag: StopFlag) -> None:
        """A run that this process has claimed, to its end or until it is given back."""
        if held.is_hopeless:
            held.end(HOPELESS)
            return
        last: dict[str, Any] = {"event": "stopped"}
        with held.beating(self.engine.abandon):
            for event in self.engine.events([self._order(job)], _Either(flag, held)):
                if event["event"] in ENDS:
                    last = event
                else:
                    self.view.event(event)
        if held.lost:  # its worker is gone, and so is the engine that knew it
            self.engine.close()
            self.engine = self.make_engine()
            self.view.say(f"{job.folder}: taken over by another process, because this one was not heard of for long")
            return
        held.end(kept(last))
        if last["event"] == "failed" and last["code"] == CannotWrite.exit_code:  # others would fail as well
            raise CannotWrite(f"{job.folder}: {last['why']}; then join again with: {self._again()}")
        if last["event"] == "done":
            self.done += 1
            self.rests.append(last.get("rest", 0.0))

    def _order(self, job: Job) -> Order:
        """With its share of the time, which is the same whenever it begins."""
        order = order_of(self.folder, self.plan, self.given, job)
        if order["trained"] and self.plan.asked.steps is None and self.plan.share is not None:
            share = self.plan.share
            rest = min(statistics.median(self.rests or [0.0]), share / 2)
            order["budget"] = {"share": share, "deadline": time.time() + LATE * share, "rounds": 1, "rest": rest}
        return order


def collect(folder: Path, plan: Plan) -> list[str]:
    """Write the table and the report of what has ended so far; the runs that are left."""
    joins = require_planned(folder, plan)
    claims = Claims(folder, joins.lease)
    look, failed = claims.look(), dict[str, Failure]()
    needs = {job.folder: job.needs for job in plan.jobs if job.needs is not None}
    left = []
    with in_use(folder):
        for job in plan.jobs:
            last = look.get(job.folder)
            end = claims.outcome(job.folder, last)
            if is_done(folder, job):
                if last is None or last.ended is not None:  # otherwise its process may still write there
                    complete(folder / job.folder)
            elif end is not None and end.event == "failed":
                failed[job.folder] = Failure(why=end.why, code=end.code)
            elif end is not None and end.event == "untrained":
                needs[job.folder] = end.needs
            elif end is None and job.needs is None:
                left.append(job.folder)
        with opening(folder):
            table = make_table(folder, plan, repeat_command(plan), failed, not left, needs)
        write_table(folder, table)
        write_report([folder])
    return left
