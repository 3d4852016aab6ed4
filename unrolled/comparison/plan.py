"""The runs of a comparison: which models, at which widths, with which seeds and data. Decided once, then kept.

`plan.json` in the comparison's directory holds what was decided, so that an interrupted comparison resumes with it.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from unrolled.comparison.config import RACE, SIZES, CompareConfig, fractions_of
from unrolled.comparison.match import TOLERANCE, Sized, match_widths
from unrolled.core import discover
from unrolled.core.config import Record
from unrolled.core.errors import UsageError
from unrolled.core.front import option
from unrolled.core.opening import shortened
from unrolled.core.spec import PRESETS, Asks, ModelSpec, misfit
from unrolled.core.task import Task
from unrolled.runs.config import MOST_THREADS, Budget
from unrolled.runs.trust import named_beside
from unrolled.runs.values import Seconds

LONGEST = 255  # bytes of the name of a folder
ENSEMBLE, COMBINING = "ensemble", 0.12  # the folder and kind of a combination of all runs, and its share of the time
RANKED = 50  # steps of a run, at least, that is worth its time
PATIENCE = 8  # evaluations without a better score, where runs may end early


def plain(name: str) -> str:
    """The name of a folder within the comparison, and of no other."""
    odd = not name or Path(name).name != name or name.startswith(".") or "\0" in name or "\\" in name
    if odd or len(os.fsencode(name)) > LONGEST:
        raise ValueError(f"'{shortened(name)}' is not a folder of this comparison")
    return name


Folder = Annotated[str, AfterValidator(plain)]


class Job(Record):
    """One run of a comparison: an ordinary run directory with these settings."""

    folder: Folder
    label: str
    kind: str  # model, baseline or ensemble
    model: str
    seed: int = 0
    fraction: float = 1.0
    settings: dict[str, Any] = {}
    fold: int | None = None
    solved: bool = False
    """Whether it is fitted in closed form, like baselines: it has no share of the time."""
    needs: float | None = None
    """Seconds that it would need, where there is no time for it: then it is not run."""
    members: list[Folder] = []
    """Folders of the runs whose predictions this one combines; it is not trained itself."""

    @property
    def trained(self) -> bool:
        return self.kind == "model" and not self.members and not self.solved and self.needs is None


class Rung(Record):
    """A stage of a race: runs that are trained for the same time, after which some of them are stopped."""

    time: Seconds
    """Seconds that each run has in all if no other is stopped."""
    until: Seconds | None
    """Seconds of its time after which each run is judged; None: the last rung, to the end."""
    runs: list[Folder]
    scores: dict[str, float] = {}
    """The criterion of each row on validation data; smaller is better."""
    stopped: dict[str, str] = {}
    """Rows that were stopped, and why."""
    judged: bool = False


DECIDED = {"model": "models", "seed": "seeds", "fraction": "fractions", "data.fraction": "fractions"}
"""settings that differ from run to run, and by which of its own a comparison is asked for them"""


class Joins(Record):
    """What processes that join a planned comparison must have in common."""

    lease: Seconds = 90.0
    """Seconds after which the run of a process that no longer shows that it is alive is taken over."""
    versions: dict[str, str]
    """Versions that it was planned with."""
    data: str
    """The fingerprint of the data."""


class Plan(Record):
    """All that was decided before the first run."""

    data: str
    given: dict[Literal["valid", "test"], str] = {}
    """Where validation and test data came from, if they were given separately."""
    task: str
    guessed: str | None
    asked: CompareConfig
    settings: dict[str, Any]
    """Settings of data, optimiser and so on, for all runs."""
    apart: dict[str, dict[str, Any]] = {}
    """Settings of single models."""
    own_file: str | None = None
    own_file_sha256: str | None = None
    """Its fingerprint: a resumed comparison asks for the same file."""
    jobs: list[Job]
    at_once: int = Field(ge=1, le=MOST_THREADS)
    threads: int = Field(ge=1, le=MOST_THREADS)
    share: float | None = None
    """Seconds of each run; in a race, those that each would have if none were stopped."""
    rungs: list[Rung] = []
    """How a race went so far."""
    aside: float | None = None
    """Seconds of the budget that are not for training, as they were estimated."""
    wanted: dict[str, Seconds] = {}
    """Seconds that each model needs for the fewest steps that are worth its time, as measured before the first run."""
    ends: dict[str, float] = {}
    """Seconds in which each of them computes its metrics on held-out data."""
    mixing: Seconds | None = None
    """Seconds in which mixtures of runs are compared, by what is kept of their outputs."""
    combining: Seconds | None = None
    """Seconds that are kept for a combination of all runs, where that needs less than its share of the time."""
    joins: Joins | None = None
    """Where processes take the runs one by one, on several machines if need be."""
    notes: list[str] = []
    recipe: list[str] = []
    """What was chosen for all runs from the data, in words."""

    @property
    def n_trained(self) -> int:
        """Runs that are trained; those in closed form and those that join others are not."""
        return n_trained(self.jobs)

    @property
    def for_ensemble(self) -> float:
        """Seconds that are kept for a combination of all runs."""
        if not any(job.kind == ENSEMBLE for job in self.jobs):
            return 0.0
        share = COMBINING * self.asked.time
        return share if self.combining is None else min(self.combining, share)

    @property
    def n_folds(self) -> int:
        return max((len(job.members) for job in self.jobs), default=0) or 1

    @property
    def runs_of_row(self) -> int:
        """Seeds or folds."""
        return self.asked.seeds * self.n_folds

    @property
    def may_race(self) -> bool:
        """Whether runs that are hopeless may be stopped: under a time budget, where all have the same data."""
        return self.asked.match == RACE and self.asked.steps is None and len(fractions_of(self.asked.fractions)) == 1

    @property
    def match(self) -> str:
        """What was equal for all runs."""
        return "time" if self.asked.match == RACE and not self.rungs else self.asked.match

    @property
    def rounds(self) -> int:
        """How many runs each process trains one after the other."""
        return -(-self.n_trained // self.at_once)


def n_trained(jobs: Iterable[Job]) -> int:
    return sum(job.trained for job in jobs)


def by_model(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Settings of all models, and those of single ones, which are given as MODEL.setting.

    >>> by_model({"lr": 0.01, "tcn.kernel": 7, "model.dropout": 0.1})
    ({'lr': 0.01, 'model.dropout': 0.1}, {'tcn': {'kernel': 7}})
    """
    known = set(discover.models.names())
    common, apart = {}, dict[str, dict[str, Any]]()
    for key, value in settings.items():
        model, _, name = key.partition(".")
        of_one = bool(name) and model in known
        if (said := name if of_one else key) in DECIDED:
            raise UsageError(f"'{key}' is decided run by run in a comparison: use {option(DECIDED[said])} instead")
        if of_one:
            apart.setdefault(model, {})[name] = value
        else:
            common[key] = value
    return common, apart


def of_task(task: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of all models with those of the task named as such: a model may have one of the same name.

    >>> of_task("classify", {"class_weights": 1, "lr": 0.01})
    {'task.class_weights': 1, 'lr': 0.01}
    """
    known = discover.tasks.load(task).Config.model_fields
    return {f"task.{key}" if key in known else key: value for key, value in settings.items()}


def own_budget(model: str, settings: Mapping[str, Any], asked: CompareConfig) -> dict[str, Any]:
    """Settings of one model, in which steps may be its own; of a time all have equal shares."""
    found = {}
    for key, value in settings.items():
        name = key.removeprefix("budget.")
        if name in Budget.model_fields:
            if name != "steps" or asked.steps is None:
                raise UsageError(
                    f"{model}.{key}: the budget is shared equally; only with {option('steps')} may a model have "
                    f"its own ({model}.steps)"
                )
            key = "budget.steps"
        found[key] = value
    return found


def trained(spec: ModelSpec, asks: Asks) -> bool:
    """Whether a model fits and is trained; those with a closed form are baselines, advised by the task, or taken by
    name."""
    return misfit(spec, asks) is None and asks.targets not in spec.closed_form


def chosen_models(asked: CompareConfig, task: Task, task_name: str, own: str | None = None) -> list[str]:
    """The models asked for, checked, or those of the preset that fit the task and can be trained (where none can, all
    that fit), with those that the task advises; and those that every comparison has, or every one of the task."""
    asks, solved = task.ports().asks(task.asks().accepts), {baseline.model for baseline in task.baselines()}
    specs = {name: discover.model(name) for name in discover.models.names()}
    able = [name for name, spec in specs.items() if name not in solved and misfit(spec, asks) is None]
    advised = {*task.ADVICE, *task.ALWAYS}
    fitting = [name for name in able if trained(specs[name], asks) or name in advised] or able  # memories store alone
    if asked.models is not None:
        names = [word.strip() for word in asked.models.split(",") if word.strip()]
        for name in names:
            if why := misfit(discover.model(name), asks):
                others = f"models that fit: {', '.join(fitting)}"
                raise UsageError(f"the model '{name}' does not fit the task '{task_name}': {why}; {others}")
    else:
        depth = PRESETS.index(asked.preset)
        names = [name for name in fitting if name in advised or PRESETS.index(specs[name].preset) <= depth]
    always = [name for name in fitting if specs[name].always or name in task.ALWAYS]
    wanted = [*names, *([own] if own else []), *always]
    if not wanted:
        raise UsageError(f"no model fits the task '{task_name}'")
    return list(dict.fromkeys(wanted))


def ensemble_jobs(asked: CompareConfig, task: Task) -> list[Job]:
    """A run that combines the others, when they are done, where that is of use to the task."""
    return (
        [Job(folder=ENSEMBLE, label=ENSEMBLE, kind=ENSEMBLE, model=ENSEMBLE)] if asked.ensemble and task.MIXES else []
    )


def baseline_jobs(task: Task) -> list[Job]:
    """The baselines of the task as runs like others, fitted by the same rule as a run of the same model alone."""
    return [
        Job(
            folder=f"baseline-{baseline.label.replace(' ', '-')}",
            label=baseline.label,
            kind="baseline",
            model=baseline.model,
            settings={f"model.{key}": value for key, value in baseline.settings.items()},
        )
        for baseline in task.baselines()
    ]


def model_jobs(
    asked: CompareConfig, names: list[str], sizes: Mapping[str, Sized], apart: Mapping[str, Mapping[str, Any]]
) -> list[Job]:
    """Every model with every fraction and seed; all models come before the second seed."""
    fractions = fractions_of(asked.fractions)
    jobs = []
    for seed in range(asked.seeds):
        for fraction in fractions:
            for name in names:
                share = "" if len(fractions) == 1 else f" {fraction:.4g}"
                sized = sizes[name].settings if name in sizes else {}
                settings = {f"model.{key}": value for key, value in sized.items()} | dict(apart.get(name, {}))
                if asked.match == "none" and asked.steps is None:
                    settings["patience"] = PATIENCE
                jobs.append(Job(
                    folder=f"{name}{share.replace(' ', '-')}-{seed}", label=f"{name}{share}", kind="model", model=name,
                    seed=seed, fraction=fraction, settings=settings,
                ))  # fmt: skip
    return jobs


def fold_of(task: Task, name: str) -> str:
    """The task's group of settings that says which fold is left out."""
    if task.FOLD is None:
        able = [each for each in discover.tasks.names() if discover.tasks.load(each).Task.FOLD is not None]
        raise UsageError(f"folds need a task with given targets ({', '.join(able)}), not {name}")
    return task.FOLD


def in_folds(jobs: list[Job], n: int, setting: str) -> list[Job]:
    """Each run once without each of n folds, and then all of a model together, which is what is shown of it.

    `setting` is the task's group of settings that says so (`Task.FOLD`).
    """
    found = []
    for job in jobs:
        name = job.folder.removesuffix("-0")
        parts = [
            job.model_copy(update={
                "folder": f"{name}-fold-{k}", "fold": k,
                "settings": {**job.settings, f"task.{setting}.of": n, f"task.{setting}.number": k},
            })
            for k in range(n)
        ]  # fmt: skip
        members = [part.folder for part in parts]
        found += [*parts, job.model_copy(update={"folder": name, "members": members})]
    return found


def sizes_of(asked: CompareConfig, names: list[str], task: Task) -> tuple[dict[str, Sized], list[str]]:
    """Widths that bring the models to one size, where that was asked for, and what is to be said about it."""
    if asked.match != "params" and asked.size is None:
        return {}, []
    found = match_widths(names, task, SIZES[asked.size or "medium"])
    notes = [f"{name} has no width to change and keeps its size" for name in names if name not in found]
    if asked.match == "params":
        counts = {name: sized.parameters for name, sized in found.items()}
        if counts and max(counts.values()) > (1 + TOLERANCE) * min(counts.values()):
            raise UsageError(
                "the models cannot be resized to equal numbers of parameters within 5 %: "
                + ", ".join(f"{name} {count:,}" for name, count in counts.items())
                + f"; leave one out with {option('models')}, or choose another {option('size')}"
            )
    return found, notes


def repeat_command(plan: Plan) -> str:
    """The command line that does this again."""
    words = ["unrolled", "compare", plan.data, "--task", plan.task]
    defaults = CompareConfig()
    for name, value in plan.asked:
        if value != getattr(defaults, name):
            flag = {"time": "--budget", "from_run": "--from"}.get(name, f"--{name}")
            words += [flag, f"{value:g}s" if name == "time" else "none" if value is None else str(value)]
    alone = {f"{model}.{key}": value for model, own in plan.apart.items() for key, value in own.items()}
    for key, value in (plan.settings | alone).items():
        words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    words += [word for part, name in named_beside(plan.given).items() for word in (f"--{part}", name)]
    return shlex.join([*words, *(["--with", plan.own_file] if plan.own_file else [])])
