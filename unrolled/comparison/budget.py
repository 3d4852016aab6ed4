"""Whether a time budget is enough for a comparison, estimated before its first run."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from unrolled.comparison.config import CompareConfig
from unrolled.comparison.cores import with_threads
from unrolled.comparison.plan import RANKED, Job, Plan
from unrolled.core.errors import UnrolledError, UsageError
from unrolled.core.front import option
from unrolled.core.task import Baseline, Task
from unrolled.runs import closed_form
from unrolled.runs.build import make_model, make_task
from unrolled.runs.config import RunConfig
from unrolled.training import recipe
from unrolled.training.api import given_keys
from unrolled.training.ensemble import MOST
from unrolled.training.estimate import ENOUGH, LEAST, Pace, closed_forms, enough, in_seconds, pace_of
from unrolled.training.member_search import PART, ROUNDS, STEPS

LEAST_SHARE = 5.0  # seconds that a run must have
LEFT_OVER = 4.0  # seconds kept for the table and the report
MEASURING, FITTING = 2.5, 1.0  # seconds, about, in which models and baselines are tried
WORTH, SOME = 150, 4  # steps that are better than a further model, where so many models were not asked for by name
STARTING = 2.0  # seconds until a process is ready
BASELINES = 0.25  # share of the time in which all baselines are fitted
READ = 3.0  # times that an ensemble computes the figures of a run, at most: to be chosen, in mixtures, and as itself
MIXING, MIXED = 0.005, 2e7  # seconds of one mixture, and numbers that are mixed in a second
BASELINE, RUN = 0.5, 0.5  # seconds of each beside fitting and training: data, model, files
LEAST_HELD_OUT, HELD_OUT_RATE = 20_000, 1000  # tokens, and tokens per second of a run's share: what all can afford
SCORED = "scores are computed on"
METRICS = 0.1  # share of a run's time, at most, in which its metrics on held-out data are computed


class Paces(NamedTuple):
    """How fast models train."""

    each: Mapping[str, Pace]
    complete: bool
    """whether there was time to try every model"""


def require_time(
    plan: Plan,
    task: Task,
    configs: Mapping[str, RunConfig],
    elapsed: float,
    in_memory: bool,
    known: Paces | None = None,
) -> Plan:
    """Refuse a time in which no model can be trained, with one in which all can; models that are too slow are left out.

    Baselines are fitted to as much of the training data as they have time for, unless the comparison is plain. Paces
    that are known are not measured again.
    """
    if plan.asked.steps is not None or not plan.n_trained:
        return plan
    limit: int | None = None
    fitted = [each for each in task.baselines() if any(job.label == each.label for job in plan.jobs)]
    solved = {name: config for name, config in configs.items() if _is_solved(task, config)}
    fitted += [Baseline(name, name, config.model_settings) for name, config in solved.items()]
    fixed = elapsed + LEFT_OVER + plan.for_ensemble + (0.0 if in_memory else STARTING)
    fixed += BASELINE * len(fitted) * plan.n_folds / plan.at_once
    with with_threads(plan.threads):
        paces, complete = known or paces_of(task, configs, plan.settings, plan.asked.plain)
        if not paces:
            return plan
        plan, paces = _with_less_held_out(plan, task, paces, METRICS * _share(plan, fixed))
        if _share(plan, fixed) >= _least(paces):  # otherwise it is known already
            own, times = next(iter(configs.values())), plan.n_folds / plan.at_once
            forms = closed_forms(own, task, fitted, FITTING)
            limit = None if plan.asked.plain else forms.limit(BASELINES * plan.asked.time / times)
            fixed += forms.seconds * times if limit is None else BASELINES * plan.asked.time
    share = _share(plan, fixed)
    plan = plan.model_copy(update={"aside": round(fixed, 2)})
    wanted = max(LEAST_SHARE, *(pace.needs(ENOUGH) for pace in paces.values()))
    needs = enough(fixed + plan.rounds * (wanted + RUN))
    if complete and share < _least(paces):  # of models that were not tried, one may be faster
        raise UsageError(
            f"{plan.asked.time:g} s are not enough for {plan.n_trained} runs, {plan.at_once} at a time: each would "
            f"have {in_seconds(max(share, 0.0))}, and the fastest model needs {in_seconds(_least(paces))} to start, "
            f"for {LEAST} steps and for its metrics; use a {option('time')} of about {in_seconds(needs)}, or fewer "
            f"models or seeds ({option('models')}, {option('seeds')})"
        )
    plan = plan if limit is None else _with_limit(plan, limit)
    worth, late = _worth(plan), list[str]()
    plan = plan.model_copy(update={
        "wanted": {name: round(pace.needs(worth[0][0]), 2) for name, pace in paces.items()},
        "ends": {name: round(pace.end, 3) for name, pace in paces.items()},
        "mixing": round(_mixing(plan, task), 2) if plan.for_ensemble else None,
    })  # fmt: skip
    for steps, fewest in worth:
        needs_of = {name: pace.needs(steps) for name, pace in paces.items() if name not in late}
        plan, more = _without_late(plan, needs_of, fixed, fewest)
        late = [name for name in paces if name in {*late, *more}]
    if not late:
        return plan
    note = (
        f"{_untrained(late)}; {option('time')} of about {in_seconds(needs)} is enough for {ENOUGH} steps of every model"
    )
    return plan.model_copy(update={"notes": [*plan.notes, note]})


def _untrained(late: list[str]) -> str:
    return f"{', '.join(late)} {'is' if len(late) == 1 else 'are'} not trained: there is too little time"


def _mixing(plan: Plan, task: Task) -> float:
    """Seconds in which mixtures of all rows are compared, by outputs that are kept."""
    rows = min(MOST, len({job.label for job in plan.jobs}))
    numbers = min(PART, task.size("valid")) * max(1, task.emission.d_out)
    return STARTING + ROUNDS * (rows + len(STEPS)) * (MIXING * plan.n_folds + numbers / MIXED)


def with_combining(plan: Plan, done: Mapping[str, Mapping[str, Any]]) -> Plan:
    """The plan with an estimate of what a combination of all runs takes: of those that are done, the seconds that
    they took beside training are known."""
    if plan.mixing is None:
        return plan
    known = {name: max(0.0, each["seconds"] - each.get("training_seconds", 0.0)) for name, each in done.items()}
    ends = [known.get(job.folder, plan.ends.get(job.model, 0.0)) for job in plan.jobs if job.needs is None]
    return plan.model_copy(update={"combining": round(plan.mixing + READ * sum(ends), 2)})


def in_time(plan: Plan, left: float) -> Plan:
    """The plan for the seconds that are left when baselines are done: where that is less than was estimated, without
    models that could not use their share, the slowest first; one stays."""
    wanted = {
        name: plan.wanted[name] for name in plan.wanted if any(job.model == name for job in plan.jobs if job.trained)
    }
    plan, late = _without_late(plan, wanted, plan.asked.time - left, 1)
    if not late:
        return plan
    note = f"{_untrained(late)}, because the baselines took longer than estimated"
    return plan.model_copy(update={"notes": [*plan.notes, note]})


def _worth(plan: Plan) -> list[tuple[int, int]]:
    """How many steps a model must be able to make, and how many models stay even if they cannot."""
    if plan.asked.plain:
        return [(LEAST, 1)]
    return [(RANKED, 1)] if plan.asked.models is not None else [(RANKED, 1), (WORTH, SOME)]


def _without_late(plan: Plan, needs: Mapping[str, float], fixed: float, fewest: int) -> tuple[Plan, list[str]]:
    """The plan without models that cannot have the seconds they need, the slowest first; others have their time."""
    late: list[str] = []
    for name in sorted(needs, key=lambda name: -needs[name]):
        if needs[name] <= _share(plan, fixed) or len(needs) - len(late) <= fewest:
            break
        late.append(name)
        jobs = [job.model_copy(update={"needs": needs[name]}) if job.model == name else job for job in plan.jobs]
        plan = plan.model_copy(update={"jobs": jobs})
    return plan, late


def _with_limit(plan: Plan, tokens: int) -> Plan:
    """The plan with closed forms that are fitted to so many tokens, which they say themselves."""
    limited = {"budget.train_tokens": tokens}
    jobs = [
        job.model_copy(update={"settings": {**job.settings, **limited}})
        if job.solved or job.kind == "baseline"
        else job
        for job in plan.jobs
    ]
    return plan.model_copy(update={"jobs": jobs})


class Timing(NamedTuple):
    """How long each run would have with some number of folds, before jobs are made of them."""

    left: float
    """seconds of the budget"""
    jobs: int
    trained: int
    """of the jobs without folds, those that are trained"""
    at_once: int

    def share(self, folds: int) -> float:
        """Seconds of each run."""
        return (self.left - self._fixed(folds)) / self._rounds(folds) - RUN

    def budget(self, seconds: float, folds: int) -> float:
        """The time in which each run has so many seconds."""
        return self._fixed(folds) + self._rounds(folds) * (seconds + RUN)

    def _fixed(self, folds: int) -> float:
        return LEFT_OVER + STARTING + BASELINE * (self.jobs - self.trained) * folds / self.at_once

    def _rounds(self, folds: int) -> int:
        return max(1, -(-self.trained * folds // self.at_once))


def held_out_limit(
    asked: CompareConfig, settings: Mapping[str, Any], task: Task, rounds: float
) -> tuple[dict[str, int], list[str]]:
    """A limit to the held-out data that leaves time to train, the same for all; and what is to be said about it."""
    if asked.steps is not None or {"held_out", "data.held_out"} & set(settings):
        return {}, []
    most = max(LEAST_HELD_OUT, round(HELD_OUT_RATE * asked.time / max(rounds, 1.0)))
    larger = [part for part in task.held_out() if task.size(part) > most]
    if not larger:
        return {}, []
    return {"held_out": most}, _scored_on(most, task, larger)


def _scored_on(most: int, task: Task, larger: Iterable[str]) -> list[str]:
    where = " and ".join(larger)
    return [f"{SCORED} {most:,} {task.UNIT} of {where}; {option('held_out')} changes that"]


def _with_less_held_out(
    plan: Plan, task: Task, paces: Mapping[str, Pace], seconds: float
) -> tuple[Plan, Mapping[str, Pace]]:
    """The plan with so little held-out data that the slowest model computes its metrics in so many seconds, and the
    paces with that; the same data for all models."""
    given, slowest = plan.settings.get("held_out"), max(pace.end for pace in paces.values())
    limited = any(note.startswith(SCORED) for note in plan.notes)  # by us, not by hand
    by_hand = "data.held_out" in plan.settings or (given is not None and not limited)
    if plan.asked.plain or by_hand or slowest <= seconds:
        return plan, paces
    sizes = {split: task.size(split) for split in task.held_out()}
    before = {split: min(size, given) if isinstance(given, int) else size for split, size in sizes.items()}
    most = max(LEAST_HELD_OUT, round(max(before.values()) * max(seconds, 0.0) / slowest))
    kept = sum(min(size, most) for size in before.values()) / max(sum(before.values()), 1)
    if kept == 1:
        return plan, paces
    notes = [note for note in plan.notes if not note.startswith(SCORED)]
    notes += _scored_on(most, task, [split for split, size in sizes.items() if size > most])
    plan = plan.model_copy(update={"settings": {**plan.settings, "held_out": most}, "notes": notes})
    return plan, {name: pace._replace(end=pace.end * kept) for name, pace in paces.items()}


def _share(plan: Plan, fixed: float) -> float:
    """Seconds of each run, where so many are used otherwise."""
    return (plan.asked.time - fixed) / plan.rounds - RUN


def _least(paces: Mapping[str, Pace]) -> float:
    """Seconds that a run must have, so that one of them is trained."""
    return max(LEAST_SHARE - RUN, min(pace.needs(LEAST) for pace in paces.values()))


def paces_of(task: Task, configs: Mapping[str, RunConfig], settings: Mapping[str, object], plain: bool) -> Paces:
    """The pace of each trained model that there is time to try; what cannot be built is reported by its run."""
    found: dict[str, Pace] = {}
    begun = time.monotonic()
    limit = settings.get("held_out")
    sizes = [task.size(split) for split in task.held_out()]
    kept = sum(min(size, limit) for size in sizes) / max(sum(sizes), 1) if isinstance(limit, int) else 1.0
    for name, config in configs.items():
        if _is_solved(task, config):
            continue
        own = _for_model(task, config)
        if time.monotonic() - begun > MEASURING:
            return Paces(found, False)
        with suppress(UnrolledError, RuntimeError, MemoryError):
            smallest = config if plain else recipe.least(config, own, given_keys(config, settings, {}))
            pace = pace_of(smallest, own, make_model(smallest, own))
            found[name] = pace._replace(end=pace.end * kept)
    return Paces(found, True)


def with_solved(jobs: Iterable[Job], task: Task, configs: Mapping[str, RunConfig]) -> list[Job]:
    """Jobs of models; those in closed form are marked: they have no share of the time."""
    return [job.model_copy(update={"solved": _is_solved(task, configs[job.model])}) for job in jobs]


def _is_solved(task: Task, config: RunConfig) -> bool:
    return closed_form.applies(config, _for_model(task, config).ports())


def _for_model(task: Task, config: RunConfig) -> Task:
    """The task with the settings that it has for a model, such as whole sequences for encoder-decoders."""
    own = copy.copy(task)
    own.config = make_task(config).config
    return own
