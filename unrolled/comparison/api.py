"""`unrolled.compare(...)`: data in, many runs under equal conditions and their table out."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from unrolled.comparison import engines, halving, joining, small, starting
from unrolled.comparison.budget import Paces, Timing, held_out_limit, paces_of, require_time, with_solved
from unrolled.comparison.config import CompareConfig
from unrolled.comparison.cores import share_of_cores, with_threads
from unrolled.comparison.engine import Processes
from unrolled.comparison.events import Recorded
from unrolled.comparison.files import read_plan, require_named, write_plan
from unrolled.comparison.orders import LOOK_OFTEN, SHORT, Given
from unrolled.comparison.plan import (
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
from unrolled.comparison.view import View, for_python
from unrolled.comparison.work import Work
from unrolled.core import discover
from unrolled.core.errors import DataError, UsageError, listed
from unrolled.core.front import invocation, option
from unrolled.data.given_splits import given_sources, names_of_sources, with_given
from unrolled.data.prepared import shared
from unrolled.runs.config import given_once
from unrolled.runs.guess import guess_task, prepared_task
from unrolled.runs.run import saved_config
from unrolled.runs.storage import atomic
from unrolled.runs.storage.directory import first_free
from unrolled.runs.storage.locks import LOCK, in_use, is_idle
from unrolled.runs.trust import data_of, fingerprint, is_path, named_beside, own_file_of, paths_among, resume_command
from unrolled.training import token_choice
from unrolled.training.api import configure
from unrolled.training.signals import stop_at_once

MOST_AT_ONCE = 4


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
    plan_only: bool = False,
    join: str | Path | None = None,
    collect: str | Path | None = None,
    engine: str = "processes",
    **more: Any,
) -> Comparison:
    """Train several models on the same data under equal conditions, and select one on validation data.

    Settings of the comparison (`models="lstm,gru", time="10m", seeds=3`) and of all its runs (`tokens="bpe",
    batch_size=16`) are keyword arguments; those of single models go into `settings`, such as {"gru.d_state": 64}, which
    accepts all others too. `valid` and `test` are data, as for `train`. Every run is an ordinary run directory below
    `out`. The time budget starts at `started`, a value of `time.monotonic()`, or now. `view` shows the progress;
    without one, a notebook shows a line for every run and a script nothing.

    `plan_only` decides everything and trains nothing; any number of processes then take the runs with `join`, the
    directory of the plan, on all machines that share it, and `collect` makes the table of what has ended. `engine` says
    who does the runs: "processes" of this machine, or "ray" (the extra [ray]), "ray://HOST:PORT" for a cluster.
    """
    started = time.monotonic() if started is None else started
    view, settings, data = view or for_python(), given_once(settings, more), with_given(data, valid, test)
    places = {"resume": resume, "join": join, "collect": collect}
    if engine != engines.PROCESSES and (plan_only or join is not None or collect is not None):
        raise UsageError(f"{option('engine')} is for a comparison that one process leads to its end: leave it out")
    if (place := _one_of(places)) is not None:
        folder = Path(str(places[place]))
        if out is not None or plan_only or not all(map(is_path, settings)):
            raise UsageError(
                f"a planned comparison keeps its settings and its directory: give only {option(place)} and the data"
            )
        if join is not None and not folder.is_dir():
            raise DataError(f"{folder}: no such directory; to join a comparison, all machines must share its directory")
        plan = read_plan(folder)  # before anything is put there
        if collect is not None:
            left = joining.collect(folder, plan)
            if left:
                view.say(joining.how_to_join(folder, plan, len(left)))
            return Comparison(folder, own_file, data)
        with stop_at_once(), shared(), nullcontext() if join is not None else in_use(folder):
            plan = read_plan(folder)
            given = given_again(folder, plan, data, settings, own_file, place)
            if join is not None:
                _join(folder, plan, given, view, started)
            else:
                joining.require_left(folder, plan)
                with engines.place(engine) as where:
                    _do_all(folder, plan, given, view, command, started, where)
        return Comparison(folder, own_file, given.data)
    if "train" not in given_sources(data):
        raise UsageError("no data was given: name a file, a folder or builtin:NAME (see `unrolled data`)")
    if plan_only or engine != engines.PROCESSES:
        engines.require_files(data, option("plan_only", True) if plan_only else option("engine", engine))
    with stop_at_once(), shared(), engines.place(engine) as where:
        plan = make_plan(data, task, settings, own_file, started, where.slots)
        where.require_cores(plan.threads)
        folder = Path(out) if out is not None else free_name("comparisons", plan.data)
        require_free(folder)
        with in_use(folder):
            require_free(folder)
            plan = joining.planned(plan, data) if plan_only else plan
            write_plan(folder, plan)
            if not plan_only:
                _do_all(folder, plan, Given(data, own_file), view, command, started, where)
        if plan_only:
            view.say(joining.how_to_join(folder, plan, len(joining.collect(folder, plan))))
    return Comparison(folder, own_file, data)


def _one_of(places: Mapping[str, Any]) -> str | None:
    """The option that names a comparison which was planned before."""
    named = [name for name, place in places.items() if place is not None]
    if len(named) > 1:
        raise UsageError(f"give only one of {listed(map(option, named))}")
    return named[0] if named else None


def given_again(
    folder: Path,
    plan: Plan,
    data: Any,
    settings: Mapping[str, Any],
    own_file: str | Path | None,
    by: str = "resume",
    verb: str = "compare",
) -> Given:
    """What this command names, which is what the plan was made with."""
    named = {"own_file": plan.own_file, **named_beside(plan.given)}
    again = resume_command(verb, folder, plan.data, named, by)
    data = data_of(folder, plan.data, plan.given, data, again)
    require_named(folder, plan, paths_among(settings))
    own_file_of(folder, plan.own_file, plan.own_file_sha256, own_file)
    return Given(data, own_file, resumed=True)


def _join(folder: Path, plan: Plan, given: Given, view: View, started: float) -> None:
    """Take runs of a planned comparison until none is left."""
    joining.require_planned(folder, plan)
    joining.require_same_data(folder, plan, given.data)
    work = joining.Joining(folder, plan, given, view, started, lambda: Processes(1, plan.threads))
    done = work.all()
    view.say(f"{done} of {len(plan.jobs)} runs were done by this process, and all have ended; the table: "
             + invocation("compare", {"collect": str(folder)}))  # fmt: skip


def _do_all(
    folder: Path, plan: Plan, given: Given, view: View, command: str | None, started: float, where: engines.Place
) -> None:
    """Every run of a plan that is not done yet, and the table."""
    atomic.sweep(folder)
    shown = Recorded(view)
    engine = where.engine(folder, plan, given.data, shown.event)
    work = Work(folder, plan, given, engine, shown, command or repeat_command(plan), started)
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
    slots: int | None = None,
) -> Plan:
    """Decide everything before the first run; a time since `started` that is not enough is refused. `slots` are the
    runs that there is room for where they are not done on this machine."""
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
    asked, unlike = halving.without_race(asked, {job.model: configs[job.model] for job in jobs if job.trained})
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    named = names_of_sources(data)
    most = 1 if engines.in_memory(data) else asked.jobs or slots or min(cores, MOST_AT_ONCE)
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
        notes=[*of_sizes, *notes, *unlike, *more], recipe=recipe,
        own_file=None if own_file is None else str(own_file),
        own_file_sha256=None if own_file is None else fingerprint(own_file),
    )  # fmt: skip
    if started is None:
        return plan
    return require_time(plan, prepared, configs, time.monotonic() - started, engines.in_memory(data), paces)


def free_name(room: str, data: str) -> Path:
    """comparisons/python-docs, comparisons/python-docs-2, ..."""
    stem = Path(data.removeprefix("builtin:")).stem or "data"
    return first_free(Path(room) / stem, lambda path: is_free(path) and is_idle(path))


def is_free(folder: Path) -> bool:
    """Whether nothing is there; what a kill left before the plan was written counts as nothing."""
    if not folder.is_dir():
        return not folder.exists()
    return all(entry.name == LOCK or atomic.is_temp(entry.name) for entry in folder.iterdir())


def require_free(folder: Path) -> None:
    if not is_free(folder):
        other = f"name another directory with {option('out')}, or resume it with {option('resume')}"
        raise UsageError(f"{folder} already exists: {other}")
