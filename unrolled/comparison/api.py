"""`unrolled.compare(...)`: data in, many runs under equal conditions and their table out."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.comparison import small, starting
from unrolled.comparison.budget import LEFT_OVER, Paces, Timing, held_out_limit, paces_of, require_time, with_solved
from unrolled.comparison.config import CompareConfig
from unrolled.comparison.cores import share_of_cores, with_threads
from unrolled.comparison.engine import Engine, Inline, Processes
from unrolled.comparison.failures import Failure, complete, diverged_before, none_trained
from unrolled.comparison.files import read_plan, require_named, write_plan, write_table
from unrolled.comparison.plan import (
    ENSEMBLE,
    Job,
    Plan,
    baseline_jobs,
    by_model,
    chosen_models,
    ensemble_jobs,
    fold_of,
    in_folds,
    model_jobs,
    n_trained,
    of_task,
    own_budget,
    repeat_command,
    sizes_of,
)
from unrolled.comparison.saved import Comparison
from unrolled.comparison.table import make_table
from unrolled.comparison.view import View, for_python
from unrolled.comparison.worker import ENDS, LEAST
from unrolled.core import discover
from unrolled.core.errors import CannotWrite, Interrupted, UsageError
from unrolled.core.front import option
from unrolled.data.given_splits import MEMORY, given_sources, names_of_sources, with_given
from unrolled.data.prepared import shared
from unrolled.report.page import write_report
from unrolled.runs.config import given_once
from unrolled.runs.guess import guess_task, prepared_task
from unrolled.runs.results import RESULT, read_result
from unrolled.runs.run import saved_config
from unrolled.runs.storage import atomic
from unrolled.runs.storage.directory import RunDirectory, first_free
from unrolled.runs.storage.locks import LOCK, in_use, is_idle
from unrolled.runs.trust import (
    data_of,
    fingerprint,
    is_path,
    named_beside,
    opening,
    own_file_of,
    paths_among,
    resume_command,
)
from unrolled.training import token_choice
from unrolled.training.api import configure
from unrolled.training.progress import clock
from unrolled.training.signals import StopFlag, stop_at_once

MOST_AT_ONCE = 4
SHORT = 300.0  # seconds; a shorter run is looked at more often, on less, so that there is a curve to see
LOOK_OFTEN = {"evaluate_every": 100, "evaluate_tokens": 30_000}
OVER = 0.05  # share of the budget by which it may be exceeded without a note


def compare(
    data: Any = None,
    task: str | None = None,
    out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    own_file: str | Path | None = None,
    resume: str | Path | None = None,
    view: View | None = None,
    command: str | None = None,
    started: float | None = None,
    valid: Any = None,
    test: Any = None,
    **more: Any,
) -> Comparison:
    """Train several models on the same data under equal conditions, and select one on validation data.

    Settings of the comparison (`models="lstm,gru", time="10m", seeds=3`) and of all its runs (`tokens="bpe",
    batch_size=16`) are keyword arguments; those of single models go into `settings`, such as {"gru.d_state": 64}, which
    accepts all others too. `valid` and `test` are data, as for `train`. Every run is an ordinary run directory below
    `out`. The time budget starts at `started`, a value of `time.monotonic()`, or now. `view` shows the progress;
    without one, a notebook shows a line for every run and a script nothing.
    """
    started = time.monotonic() if started is None else started
    view, settings, data = view or for_python(), given_once(settings, more), with_given(data, valid, test)
    if resume is not None:
        if out is not None or not all(map(is_path, settings)):
            raise UsageError(
                f"a resumed comparison keeps its settings and its directory: give only {option('resume')} and the data"
            )
        folder = Path(resume)
        read_plan(folder)  # before anything is put there
        with stop_at_once(), shared(), in_use(folder):
            plan = read_plan(folder)
            named = {"own_file": plan.own_file, **named_beside(plan.given)}
            again = resume_command("compare", folder, plan.data, named)
            data = data_of(folder, plan.data, plan.given, data, again)
            require_named(folder, plan, paths_among(settings))
            own_file_of(folder, plan.own_file, plan.own_file_sha256, own_file)
            _do_all(folder, plan, Given(data, own_file, resumed=True), view, command, started)
    else:
        if "train" not in given_sources(data):
            raise UsageError("no data was given: name a file, a folder or builtin:NAME (see `unrolled data`)")
        with stop_at_once(), shared():
            plan = make_plan(data, task, settings, own_file, started)
            folder = Path(out) if out is not None else _free_name(plan)
            _require_free(folder)
            with in_use(folder):
                _require_free(folder)
                write_plan(folder, plan)
                _do_all(folder, plan, Given(data, own_file), view, command, started)
    return Comparison(folder, own_file, data)


class Given(NamedTuple):
    """What the reader of this very command named: no run is given a path that only the plan holds."""

    data: Any
    own_file: str | Path | None
    resumed: bool = False  # there may be results of before


def _do_all(folder: Path, plan: Plan, given: Given, view: View, command: str | None, started: float) -> None:
    """Every run of a plan that is not done yet, and the table."""
    atomic.sweep(folder)
    in_memory = MEMORY in names_of_sources(given.data).values()
    engine: Engine = Inline(given.data, view.event) if in_memory else Processes(plan.at_once, plan.threads)
    work = _Work(folder, plan, given, engine, view, command or repeat_command(plan), started)
    try:
        work.all()
    except KeyboardInterrupt:
        raise work.interrupted() from None


def make_plan(
    data: Any,
    task: str | None,
    settings: Mapping[str, Any],
    own_file: str | Path | None = None,
    started: float | None = None,
) -> Plan:
    """Decide everything before the first run; a time since `started` that is not enough is refused."""
    own = None if own_file is None else discover.join(own_file).get(discover.models)
    asked = CompareConfig.parse({key: settings[key] for key in settings if key in CompareConfig.model_fields})
    rest = {key: value for key, value in settings.items() if key not in CompareConfig.model_fields}
    rest, apart = by_model(rest)
    apart = {name: own_budget(name, own_settings, asked) for name, own_settings in apart.items()}
    guessed = None
    if task is None:
        task, guessed = guess_task(given_sources(data)["train"], rest)
    rest = of_task(task, rest)
    prepared = prepared_task(task, rest, data)
    few, wider, notes = small.counted(asked, prepared, rest)
    if wider:
        rest |= wider
        prepared = prepared_task(task, rest, data)
    recipe: list[str] = []
    if not asked.plain and asked.steps is None:
        rest, prepared, recipe = token_choice.for_all(task, rest, data, prepared, asked.time)
    names = chosen_models(asked, prepared, task, own)
    saved = None if asked.from_run is None else saved_config(asked.from_run)
    if saved is not None:
        starting.require_fit(saved, str(asked.from_run), prepared.ports().asks(prepared.ACCEPTS), task)
        names = [name for name in names if name != saved.model]
    unused = [name for name in apart if name not in names and (saved is None or name != saved.model)]
    if unused:
        raise UsageError(f"there are settings for {', '.join(unused)}, but the models compared are {', '.join(names)}")
    look = LOOK_OFTEN if asked.plain and asked.steps is None and asked.time < SHORT else {}
    configs = {  # a wrong setting is told now
        name: configure(task, name, data, look | rest | apart.get(name, {}), own_file=discover.needed(own_file, name))
        for name in names
    }
    sizes, of_sizes = sizes_of(asked, names, prepared)
    jobs = [*baseline_jobs(prepared), *with_solved(model_jobs(asked, names, sizes, apart), prepared, configs)]
    if saved is not None:
        started_from = starting.jobs_from(asked, saved, apart.get(saved.model, {}))
        jobs += started_from
        configs[saved.model] = configure(task, saved.model, data, look | rest | started_from[-1].settings)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    named = names_of_sources(data)
    most = 1 if MEMORY in named.values() else asked.jobs or min(cores, MOST_AT_ONCE)
    paces: Paces | None = None
    if few is not None and started is not None:
        with with_threads(share_of_cores(cores // most)):
            paces = paces_of(prepared, configs, rest, asked.plain)
        timing = Timing(asked.time - (time.monotonic() - started), len(jobs), n_trained(jobs), most)
        asked, notes = small.with_folds(asked, few, paces.each, timing, notes)
    if isinstance(asked.folds, int):
        jobs = in_folds(jobs, asked.folds, fold_of(prepared, task))
    jobs += ensemble_jobs(asked, prepared)
    at_once = min(most, len(jobs))
    held_out, more = held_out_limit(asked, rest, prepared, n_trained(jobs) / at_once)
    plan = Plan(
        data=named.pop("train"), given=named, task=task, guessed=guessed, asked=asked, settings=rest | held_out,
        apart=apart, jobs=jobs, at_once=at_once, threads=int(rest.get("threads") or share_of_cores(cores // at_once)),
        notes=[*of_sizes, *notes, *more], recipe=recipe,
        own_file=None if own_file is None else str(own_file),
        own_file_sha256=None if own_file is None else fingerprint(own_file),
    )  # fmt: skip
    if started is None:
        return plan
    in_memory = MEMORY in names_of_sources(data).values()
    return require_time(plan, prepared, configs, time.monotonic() - started, in_memory, paces)


def _free_name(plan: Plan) -> Path:
    """comparisons/python-docs, comparisons/python-docs-2, ..."""
    stem = Path(plan.data.removeprefix("builtin:")).stem or "data"
    return first_free(Path("comparisons") / stem, lambda path: _is_free(path) and is_idle(path))


def _is_free(folder: Path) -> bool:
    """Whether nothing is there; what a kill left before the plan was written counts as nothing."""
    if not folder.is_dir():
        return not folder.exists()
    return all(entry.name == LOCK or atomic.is_temp(entry.name) for entry in folder.iterdir())


def _require_free(folder: Path) -> None:
    if not _is_free(folder):
        other = f"name another directory with {option('out')}, or resume it with {option('resume')}"
        raise UsageError(f"{folder} already exists: {other}")


class _Work:
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
                    self._phase([job for job in jobs if job.kind == "model" and not job.solved], flag)
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

    def _do(self, jobs: Sequence[Job], flag: StopFlag) -> None:
        """Those runs that are not done yet, unless somebody has asked to stop."""
        jobs = [] if self.stopped else jobs
        for job in jobs:
            if self._is_done(job):
                complete(self.folder / job.folder)
                self.view.event({"event": "done", "folder": job.folder})
            elif job.folder in self.failed:  # and would again
                self.view.event(self.failed[job.folder].event(job.folder))
        left = [job for job in jobs if not self._is_done(job) and job.folder not in self.failed]
        for event in self.engine.events(self._timed([self._order(job) for job in left]), flag):
            if event["event"] == "failed" and event["code"] == CannotWrite.exit_code:  # others would fail as well
                raise CannotWrite(f"{event['folder']}: {event['why']}; then resume with: {self._again()}")
            if event["event"] == "failed":
                self.failed[event["folder"]] = Failure(why=event["why"], code=event["code"])
            if event["event"] == "done":
                self.rests.append(event.get("rest", 0.0))
            if event["event"] == "untrained":
                self.needs[event["folder"]] = event["needs"]
            self.stopped = self.stopped or event["event"] == "stopped"
            self.view.event(event)
            if event["event"] in ENDS and jobs[0].kind != "baseline":
                self._save(finished=False)
        self.stopped = self.stopped or flag.asked

    def _is_done(self, job: Job) -> bool:
        return (self.folder / job.folder / "result.json").exists()

    def _share(self) -> None:
        """Divide what is left of the time; the share is kept, so that a resumed comparison stays fair."""
        plan = self.plan
        n = plan.n_trained
        if plan.asked.steps is not None or plan.share is not None or not n:
            return
        left = plan.asked.time - (time.monotonic() - self.started) - LEFT_OVER - plan.for_ensemble
        share = max(LEAST, left / plan.rounds)  # in which some may not be trained, which they say
        self.plan = plan.model_copy(update={"share": round(share, 2)})
        write_plan(self.folder, self.plan)
        self.view.say(f"{n} runs, {plan.at_once} at a time, {share:.0f} s each on {plan.threads} thread(s)")

    def _timed(self, orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Runs that are trained with the time that they have: all know when the last of them must be done.

        What runs do after their figures is expected to take as long as it did so far, on this machine under its load.
        """
        plan, trained = self.plan, [order for order in orders if order["trained"]]
        if plan.asked.steps is not None or plan.share is None:
            return orders
        rounds = -(-len(trained) // plan.at_once)
        facts = {"share": plan.share, "deadline": time.time() + rounds * plan.share}
        facts["rest"] = min(statistics.median(self.rests or [0.0]), plan.share / 2)
        for number, order in enumerate(trained):
            order["budget"] = {**facts, "rounds": rounds - number // plan.at_once}
        return orders

    def _order(self, job: Job) -> dict[str, Any]:
        plan = self.plan
        settings = {**plan.settings, **job.settings, "seed": job.seed, "fraction": job.fraction}
        settings["threads"] = plan.threads
        if job.kind == "model":
            if plan.asked.steps:
                settings = {"budget.steps": plan.asked.steps} | settings
            if plan.asked.plain:
                settings["plain"] = True
                settings = LOOK_OFTEN | settings if plan.share is not None and plan.share < SHORT else settings
        own = self.given.own_file if job.kind == ENSEMBLE else discover.needed(self.given.own_file, job.model)
        return {
            "folder": job.folder, "out": str(self.folder / job.folder), "data": self._data(), "task": plan.task,
            "trained": job.trained, "model": job.model, "settings": settings, "own_file": own and str(own),
            "members": [str(self.folder / member) for member in job.members],
            "candidates": self._candidates() if job.kind == ENSEMBLE else None,
            "baselines": {} if job.kind == "baseline" else self._baselines(job.fold),
        }  # fmt: skip

    def _candidates(self) -> dict[str, Any]:
        """What an ensemble is made of: all runs on all data, with those of their folds, and in how many seconds."""
        done = [job for job in self.plan.jobs if job.fold is None and job.kind != ENSEMBLE and self._is_done(job)]
        most = max((job.fraction for job in done), default=1.0)
        runs = [job for job in done if job.fraction == most]
        folds = [[str(self.folder / member) for member in job.members] for job in runs]
        seconds = None if self.plan.asked.steps is not None else self.plan.for_ensemble
        return {"runs": [str(self.folder / job.folder) for job in runs], "folds": folds, "seconds": seconds}

    def _data(self) -> str | dict[str, str]:
        """What is in an order: names, or that the data is in this process."""
        return names if len(names := names_of_sources(self.given.data)) > 1 else names["train"]

    def _baselines(self, fold: int | None) -> dict[str, Any]:
        """The figures of the baselines that finished, on the same fold, as every run keeps them."""
        figures = {}
        for job in self.plan.jobs:
            place = self.folder / job.folder
            if job.kind == "baseline" and job.fold == fold and (place / RESULT).exists():
                result = read_result(RunDirectory.open(place))
                figures[job.label] = {split: result[split] for split in ("valid", "test") if split in result}
        return figures

    def _save(self, finished: bool) -> dict[str, Any]:
        with opening(self.folder) if self.given.resumed else nullcontext():
            table = make_table(self.folder, self.plan, self.command, self.failed, finished, self.needs)
        write_table(self.folder, table)
        if finished or self.stopped:
            write_report([self.folder])
        return table
