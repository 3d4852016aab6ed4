"""A comparison being done: its runs, phase by phase, the race between them, and the table."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from unrolled.comparison import halving
from unrolled.comparison.budget import LEFT_OVER, in_time, with_combining
from unrolled.comparison.engine import Engine
from unrolled.comparison.failures import Failure, complete, diverged_before, none_trained
from unrolled.comparison.files import write_plan, write_table
from unrolled.comparison.orders import Given, Order, is_done, order_of, results_in
from unrolled.comparison.plan import ENSEMBLE, Job, Plan, Rung
from unrolled.comparison.table import make_table
from unrolled.comparison.view import View
from unrolled.comparison.worker import ENDS, LEAST
from unrolled.core.errors import CannotWrite, Interrupted
from unrolled.report.page import write_report
from unrolled.runs.trust import named_beside, opening, resume_command
from unrolled.training import rungs
from unrolled.training.progress import clock
from unrolled.training.signals import StopFlag

OVER = 0.05  # share of the budget by which it may be exceeded without a note


class Work:
    """A comparison being done."""

    def __init__(
        self, folder: Path, plan: Plan, given: Given, engine: Engine, view: View, command: str, started: float
    ) -> None:
        self.given = given
        self.folder, self.plan, self.engine, self.view, self.command = folder, plan, engine, view, command
        self.started = started
        self.failed = diverged_before(folder)
        self.rests: list[float] = []  # seconds that each run so far took after its figures
        self.needs = {job.folder: job.needs for job in plan.jobs if job.needs is not None}  # of runs without time
        self.preparing: list[float] = []  # seconds that each run so far took before its first step
        self.stopped = False

    def all(self) -> None:
        """Baselines first, for every run is set beside them; then models in closed form, and those that are trained
        in the time that is left."""
        self.view.begin(self.plan, self.folder, self.started)
        with StopFlag() as flag:
            try:
                jobs = [job for job in self.plan.jobs if job.needs is None]
                self._phase([job for job in jobs if job.kind == "baseline"], flag)
                self._phase([job for job in jobs if job.kind == "model" and job.solved], flag)
                if not self.stopped:
                    self._share()
                    jobs = [job for job in self.plan.jobs if job.needs is None]
                    self._models([job for job in jobs if job.kind == "model" and not job.solved], flag)
                    self._phase([job for job in jobs if job.kind == ENSEMBLE], flag)
            finally:
                self.engine.close()
                self.view.end()
        table = self._save(finished=not self.stopped)
        over = time.monotonic() - self.started - self.plan.asked.time
        if self.plan.asked.steps is None and over > OVER * self.plan.asked.time:
            self.view.say(f"note: {clock(over)} over the budget: evaluating and saving took longer than estimated")
        if self.stopped:
            raise self.interrupted()
        if not any(row["kind"] == "model" and row["runs"] for row in table["rows"]):
            raise none_trained(self.folder, self.plan, table, self.failed)

    def interrupted(self) -> Interrupted:
        return Interrupted(f"stopped and saved; resume with: {self._again()}")

    def _again(self) -> str:
        named = {"own_file": self.given.own_file, **named_beside(self.plan.given)}
        return resume_command("compare", self.folder, self.plan.data, named)

    def _models(self, jobs: Sequence[Job], flag: StopFlag) -> None:
        """Those that are trained: in a race, where enough time is left for one, otherwise with equal shares."""
        plan, alone = self.plan, [job for job in jobs if not job.members]
        if plan.rungs or self._may_race(alone):
            self._race(alone, flag)
            self._do([job for job in jobs if job.members], flag)
        else:
            self._phase(jobs, flag)

    def _may_race(self, jobs: Sequence[Job]) -> bool:
        """Whether a race would stop anybody; where the time is too short for one, that is said."""
        plan, rows = self.plan, len({job.label for job in jobs})
        if not plan.may_race or plan.share is None or halving.n_kept(rows, plan.runs_of_row, plan.at_once) == rows:
            return False
        if plan.share < halving.SHORTEST:
            self.view.say(f"no race, every run has the same time: {halving.SHORTEST:.0f} s each are needed for one")
        return plan.share >= halving.SHORTEST

    def _race(self, jobs: Sequence[Job], flag: StopFlag) -> None:
        """Rung by rung; what is decided is in the plan, so that a race that is stopped resumes where it was."""
        number = 0
        while left := [] if self.stopped else [job for job in jobs if self._races(job, number)]:
            if all(is_done(self.folder, job) for job in left):  # by themselves, before they were judged
                self._do(left, flag)
                return
            if number == len(self.plan.rungs):
                self._put(number, self._next_rung(left))
            rung = self.plan.rungs[number]
            if rung.until is None:
                self._do(left, flag, rung)
                return
            until = rung.until
            self._do([job for job in left if not self._has_reached(job, until)], flag, rung)
            if self.stopped:
                return
            if not rung.judged:
                rung = self._put(number, self._judged(number, left))
            self._do([job for job in left if job.label in rung.stopped], flag, rung)
            number += 1

    def _races(self, job: Job, number: int) -> bool:
        """Whether a run is still there at a rung; where one of its folds is gone, a row is."""
        gone = self.failed.keys() | self.needs.keys()
        row = [job] if job.fold is None else [each for each in self.plan.jobs if each.label == job.label]
        return not any(each.folder in gone for each in row) and not any(
            job.label in rung.stopped for rung in self.plan.rungs[:number]
        )

    def _reached(self, job: Job) -> rungs.Reached | None:
        """Where a run that is under way stood at its last rung."""
        return None if is_done(self.folder, job) else rungs.reached(self.folder / job.folder)

    def _has_reached(self, job: Job, until: float) -> bool:
        at = self._reached(job)
        return at is not None and at.seconds >= until

    def _next_rung(self, left: Sequence[Job]) -> Rung:
        """A rung of these runs: of the time that is left by the clock, and by what all runs have used."""
        plan = self.plan
        assert plan.share is not None
        running = [job for job in left if not is_done(self.folder, job)] or list(left)
        before = max((at.seconds for job in running if (at := self._reached(job)) is not None), default=0.0)
        raced = [rungs.reached(self.folder / job.folder) for job in plan.jobs if job.trained]
        used = sum(at.seconds for at in raced if at is not None)
        seconds = min(self._left(), plan.share * plan.rounds - used / plan.at_once)
        overhead = (self._preparing() if before else 0.0) + min(self._rest(), plan.share / 2)
        whole = before + max(LEAST, seconds / -(-len(running) // plan.at_once) - overhead)
        labels = len({job.label for job in running})
        until = halving.judged_after(whole, before, labels, plan.runs_of_row, plan.at_once)
        if until is None:
            self.view.say(f"race: last rung, {len(running)} runs of {whole:.0f} s each in all")
        else:
            self.view.say(f"race: rung {len(plan.rungs) + 1}, {len(running)} runs up to {until:.0f} s each")
        return Rung(time=round(whole, 2), until=until, runs=[job.folder for job in running])

    def _judged(self, number: int, left: Sequence[Job]) -> Rung:
        """A rung with who is stopped there."""
        plan = self.plan
        rows: dict[str, list[rungs.Reached]] = {}
        for job in left:
            if self._races(job, number) and (at := self._reached(job)) is not None:
                rows.setdefault(job.label, []).append(at)
        standings = [halving.Standing(label, each, plan.n_folds > 1) for label, each in rows.items()]
        kept = halving.n_kept(len(standings), plan.runs_of_row, plan.at_once)
        lost = halving.stopped(standings, kept, number + 1)
        for label, why in lost.items():
            self.view.say(f"race: {label} {why}")
        scores = {row.label: row.score for row in standings}
        return plan.rungs[number].model_copy(update={"scores": scores, "stopped": lost, "judged": True})

    def _preparing(self) -> float:
        """Seconds that a run needs, on this machine under its load, to start again."""
        return statistics.median(self.preparing or [0.0])

    def _rest(self) -> float:
        """Seconds that a run needs after its figures."""
        return statistics.median(self.rests or [0.0])

    def _put(self, number: int, rung: Rung) -> Rung:
        """Keep what is decided."""
        self.plan = self.plan.model_copy(update={"rungs": [*self.plan.rungs[:number], rung]})
        write_plan(self.folder, self.plan)
        return rung

    def _left(self) -> float:
        """Seconds that are left for training, by the clock."""
        plan = self.plan
        return plan.asked.time - (time.monotonic() - self.started) - LEFT_OVER - plan.for_ensemble

    def _phase(self, all_jobs: Sequence[Job], flag: StopFlag) -> None:
        """Some runs; those of one model's folds before they are joined."""
        for joined in (False, True):
            jobs = [job for job in all_jobs if bool(job.members) is joined]
            self._do(jobs, flag)
            killed = [job for job in jobs if job.folder in self.failed and self.failed[job.folder].was_killed]
            if killed and jobs[0].kind == "baseline":  # every run is set beside them, so they are tried once more
                for job in killed:
                    del self.failed[job.folder]
                self._do(killed, flag)

    def _do(self, jobs: Sequence[Job], flag: StopFlag, rung: Rung | None = None) -> None:
        """Those runs that are not done yet, unless somebody has asked to stop; in a race up to a rung."""
        jobs = [] if self.stopped else jobs
        for job in jobs:
            if is_done(self.folder, job):
                complete(self.folder / job.folder)
                self.view.event({"event": "done", "folder": job.folder})
            elif job.folder in self.failed:  # and would again
                self.view.event(self.failed[job.folder].event(job.folder))
        left = [job for job in jobs if not is_done(self.folder, job) and job.folder not in self.failed]
        for event in self.engine.events(self._timed(left, rung), flag):
            if event["event"] == "failed" and event["code"] == CannotWrite.exit_code:  # others would fail as well
                raise CannotWrite(f"{event['folder']}: {event['why']}; then resume with: {self._again()}")
            if event["event"] == "failed":
                self.failed[event["folder"]] = Failure(why=event["why"], code=event["code"])
            if event["event"] == "done":
                self.rests.append(event.get("rest", 0.0))
            if event["event"] == "paused":
                self.preparing.append(event.get("preparing", 0.0))
            if event["event"] == "untrained":
                self.needs[event["folder"]] = event["needs"]
            self.stopped = self.stopped or event["event"] == "stopped"
            self.view.event(event)
            if event["event"] in ENDS and jobs[0].kind != "baseline":
                self._save(finished=False)
        self.stopped = self.stopped or flag.asked

    def _share(self) -> None:
        """Divide what is left of the time; the share is kept, so that a resumed comparison stays fair."""
        plan = self.plan
        n = plan.n_trained
        if plan.asked.steps is not None or plan.share is not None or not n:
            return
        self.plan = plan = with_combining(plan, results_in(self.folder, plan))
        plan = in_time(plan, self._left())
        n = plan.n_trained
        for note in plan.notes[len(self.plan.notes) :]:
            self.view.say(f"note: {note}")
        for job in plan.jobs:
            if job.needs is not None and job.folder not in self.needs:
                self.needs[job.folder] = job.needs
                self.view.event({"event": "untrained", "folder": job.folder, "needs": job.needs})
        share = max(LEAST, self._left() / plan.rounds)  # in which some may not be trained, which they say
        self.plan = plan.model_copy(update={"share": round(share, 2)})
        write_plan(self.folder, self.plan)
        self.view.say(f"{n} runs, {plan.at_once} at a time, {share:.0f} s each on {plan.threads} thread(s)")

    def _timed(self, jobs: Sequence[Job], rung: Rung | None) -> list[Order]:
        """Orders: runs that are trained with the time that they have. All know when the last of them must be done.

        What runs do after their figures is expected to take as long as it did so far, on this machine under its load.
        """
        plan, orders = self.plan, [order_of(self.folder, self.plan, self.given, job) for job in jobs]
        if plan.asked.steps is not None or plan.share is None:
            return orders
        if rung is not None:
            facts = {"time": rung.time, "preparing": self._preparing()}
            for job, order in zip(jobs, orders, strict=True):
                end = rung.stopped.get(job.label)
                order["rung"] = {**facts, "until": None if end else rung.until, "end": end}
            if rung.until is not None:
                return orders
        trained = [order for order in orders if order["trained"]]
        rounds = -(-len(trained) // plan.at_once)
        share = plan.share if rung is None else max(LEAST, self._left() / max(rounds, 1))
        facts = {"share": share, "deadline": time.time() + rounds * share, "rest": min(self._rest(), share / 2)}
        for number, order in enumerate(trained):
            order["budget"] = {**facts, "rounds": rounds - number // plan.at_once}
        return orders

    def _save(self, finished: bool) -> dict[str, Any]:
        with opening(self.folder) if self.given.resumed else nullcontext():
            table = make_table(self.folder, self.plan, self.command, self.failed, finished, self.needs)
        write_table(self.folder, table)
        if finished or self.stopped:
            write_report([self.folder])
        return table
