"""`unrolled.tune(...)`: data in, trials of one model with different settings and the best of them out."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unrolled.comparison import engines
from unrolled.comparison.api import MOST_AT_ONCE, free_name, given_again, require_free
from unrolled.comparison.config import CompareConfig
from unrolled.comparison.cores import share_of_cores
from unrolled.comparison.files import read_plan, write_plan
from unrolled.comparison.orders import Given
from unrolled.comparison.plan import Plan
from unrolled.comparison.saved import Comparison
from unrolled.comparison.view import View, for_python
from unrolled.core import discover
from unrolled.core.errors import UnrolledError, UsageError
from unrolled.core.front import option
from unrolled.data.given_splits import given_sources, names_of_sources, with_given
from unrolled.data.prepared import shared
from unrolled.runs import closed_form
from unrolled.runs.config import given_once
from unrolled.runs.guess import prepared_task
from unrolled.runs.storage import atomic
from unrolled.runs.storage.locks import in_use
from unrolled.runs.trust import fingerprint, is_path, named_beside
from unrolled.training.api import configure, given_keys
from unrolled.training.progress import Quiet
from unrolled.training.signals import stop_at_once
from unrolled.tuning.config import MOST_TRIALS, TuneConfig
from unrolled.tuning.files import Search, read_search, write_search
from unrolled.tuning.space import first_of, space_of
from unrolled.tuning.study import imported
from unrolled.tuning.table import tabled
from unrolled.tuning.work import SURE, Searching

COST = 0.45  # of the length of a trial, about, that a trial takes on average: most are stopped early
SHORTEST = 5.0  # seconds of a trial
LEFT_OVER = 4.0  # seconds for the table and the report


def tune(
    data: Any = None,
    task: str | None = None,
    model: str | None = None,
    out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    own_file: str | Path | None = None,
    resume: str | Path | None = None,
    view: View | None = None,
    started: float | None = None,
    valid: Any = None,
    test: Any = None,
    engine: str = engines.PROCESSES,
    **more: Any,
) -> Comparison:
    """Search for good settings of a model by their scores on validation data (the extra [tune]).

    Settings of the search (`time="30m"`, `trials=20`, `search="lr,d_state"`) and of all trials are keyword arguments,
    as for `compare`; a setting that is given is not searched. Every trial is an ordinary run directory below `out`,
    which opens as the best of them: `tune(...).best`. `resume` is the directory of a search that was stopped. `engine`
    says who trains the trials, as for `compare`.
    """
    started = time.monotonic() if started is None else started
    view, settings, data = view or for_python(), given_once(settings, more), with_given(data, valid, test)
    imported()
    if resume is not None:
        folder = Path(resume)
        if out is not None or not all(map(is_path, settings)):
            raise UsageError(
                f"a resumed search keeps its settings and its directory: give only {option('resume')} and the data"
            )
        read_search(folder)
        with stop_at_once(), shared(), in_use(folder), engines.place(engine) as where:
            plan = read_plan(folder)
            given = given_again(folder, plan, data, settings, own_file, verb="tune")
            _search(folder, read_search(folder), plan, given, where, view, started)
        return Comparison(folder, own_file, given.data)
    if "train" not in given_sources(data):
        raise UsageError("no data was given: name a file, a folder or builtin:NAME (see `unrolled data`)")
    if engine != engines.PROCESSES:
        engines.require_files(data, option("engine", engine))
    with stop_at_once(), shared(), engines.place(engine) as where:
        search, plan = make_search(data, task, model, settings, own_file, where.slots)
        where.require_cores(plan.threads)
        folder = Path(out) if out is not None else free_name("tuning", plan.data)
        require_free(folder)
        with in_use(folder):
            require_free(folder)
            write_search(folder, search)
            write_plan(folder, plan)
            _search(folder, search, plan, Given(data, own_file), where, view, started)
    return Comparison(folder, own_file, data)


def _search(
    folder: Path, search: Search, plan: Plan, given: Given, where: engines.Place, view: View, started: float
) -> None:
    """Every trial that is not done yet, and the table."""
    atomic.sweep(folder)
    work = Searching(folder, search, plan, given, where.engine(folder, plan, given.data, view.event), view, started)
    command = repeat_command(search, plan)
    try:
        work.all()
    except KeyboardInterrupt:
        raise work.interrupted() from None
    finally:
        table = tabled(folder, search, work.plan, work.study, command, not work.stopped)
    if not table["rows"]:
        whys = [each.why for each in work.study.trials() if each.why]
        raise UnrolledError(
            f"no trial of this search was trained to the end ({whys[0] if whys else 'all were stopped'})"
        )


def make_search(
    data: Any,
    task: str | None,
    model: str | None,
    settings: Mapping[str, Any],
    own_file: str | Path | None = None,
    slots: int | None = None,
) -> tuple[Search, Plan]:
    """Decide everything before the first trial: the ranges, how long trials are, how many there are at once."""
    asked = TuneConfig.parse({key: settings[key] for key in settings if key in TuneConfig.model_fields})
    rest = {key: value for key, value in settings.items() if key not in TuneConfig.model_fields}
    if own_file is not None:
        model = discover.join_for(own_file, model)
    said = Quiet()
    config = configure(task, model, data, rest, own_file=own_file, shown=said)
    prepared = prepared_task(config.task, rest, data)
    if closed_form.applies(config, prepared.ports()):
        raise UsageError(
            f"the model '{config.model}' is fitted in closed form, not trained: there is nothing to search"
        )
    space = space_of(config, given_keys(config, rest, {}), asked.search)
    measures = asked.settled
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    most = 1 if engines.in_memory(data) else asked.jobs or slots or min(cores, MOST_AT_ONCE)
    at_once = min(most, measures["trials"])
    seconds = None if measures["time"] is None else _length(measures["time"], measures["trials"], at_once)
    known = {"time": measures["time"]} if measures["time"] is not None else {"steps": measures["steps"]}
    compared = CompareConfig(models=config.model, match="none", folds=None, ensemble=False, plain=True, **known)
    named = names_of_sources(data)
    plan = Plan(
        data=named.pop("train"), given=named, task=config.task, guessed=None, asked=compared, settings=rest, jobs=[],
        at_once=at_once, threads=int(rest.get("threads") or share_of_cores(cores // at_once)), share=seconds,
        notes=said.said, own_file=None if own_file is None else str(own_file),
        own_file_sha256=None if own_file is None else fingerprint(own_file),
    )  # fmt: skip
    few = asked.trials or (measures["trials"] if seconds is None else MOST_TRIALS)
    search = Search(
        asked=asked.model_copy(update={"time": measures["time"]}), model=config.model, space=space,
        first=first_of(space, config), at_once=at_once, trials=few, steps=measures["steps"], seconds=seconds,
    )  # fmt: skip
    return search, plan


def _length(time: float, trials: int, at_once: int) -> float:
    """Seconds of a trial that is trained to the end, where most are stopped early, but not the first of them.

    >>> _length(604.0, 24, 2), _length(34.0, 3, 1)
    (96.39, 10.0)
    """
    whole = min(trials, max(at_once, SURE - 1))
    lengths = whole + COST * (trials - whole)
    seconds = (time - LEFT_OVER) * at_once / lengths
    if seconds < SHORTEST:
        enough = SHORTEST * lengths / at_once + LEFT_OVER
        raise UsageError(
            f"{time:g} s are not enough for {trials} trials, {at_once} at a time: use a {option('time')} of about "
            f"{enough:.0f} s, or fewer {option('trials')}"
        )
    return round(seconds, 2)


def repeat_command(search: Search, plan: Plan) -> str:
    """The command line that does this again."""
    words = ["unrolled", "tune", plan.data, "--task", plan.task, "--model", search.model]
    defaults = TuneConfig()
    for name, value in search.asked:
        if value != getattr(defaults, name):
            words += ["--budget" if name == "time" else f"--{name}", f"{value:g}s" if name == "time" else str(value)]
    for key, value in plan.settings.items():
        words += ["--set", f"{key}={value}"]
    words += [word for part, name in named_beside(plan.given).items() for word in (f"--{part}", name)]
    return shlex.join([*words, *(["--with", plan.own_file] if plan.own_file else [])])
