"""Small data: a test split that is large enough to distinguish models, and folds in place of a small validation split.

Decided from what was prepared (examples, class counts, which splits were given), the speed of the models and the time
budget (docs/decisions/0025-small-data.md). Whatever was asked for stays as it is.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any, NamedTuple

from unrolled.comparison.budget import Timing
from unrolled.comparison.config import AUTO, CompareConfig
from unrolled.core.front import option
from unrolled.core.task import Task
from unrolled.training.estimate import Pace, enough, in_seconds

SMALL = 2000  # examples; from so many on, a validation split of 5 % tells models apart
TEST, OF_CLASS = 100, 5  # test examples in all, and of each class, that are wanted
COMMON = 20  # examples of a class that is counted
MOST, LEAST = 0.25, 0.05  # share of the data that is for test
FOLDS = (5, 3)  # the first that there is time for
STEPS, SECONDS = 200, 10.0  # of a run, in the median of all models, that folds must leave time for
NAMES = ("split", "data.split")


class Counts(NamedTuple):
    """What is known of prepared data."""

    examples: int
    classes: tuple[int, ...]
    """examples of each class; none where targets are no classes"""
    given: tuple[str, ...]
    """splits that the data or the user gives"""


def is_automatic(asked: CompareConfig) -> bool:
    """Whether anything is to be chosen: a number of steps or of runs is a promise of what is done."""
    once = asked.steps is None and asked.seeds == 1 and asked.fractions == "1"
    return asked.folds == AUTO and not asked.plain and once


def counted(
    asked: CompareConfig, task: Task, settings: Mapping[str, Any]
) -> tuple[Counts | None, dict[str, Any], list[str]]:
    """The counts of small data for which something may be chosen, settings of a larger test split, and what is to be
    said about it; None: the data is not small, or all was asked for."""
    counts = counts_of(task) if is_automatic(asked) else None
    return (None, {}, []) if counts is None else (counts, *larger_test(counts, settings))


def counts_of(task: Task) -> Counts | None:
    """The counts of a task that can be cross-validated; None: it cannot, or the data is not small."""
    if task.FOLD is None:
        return None
    facts = task.facts()
    examples = sum(each["examples"] for each in facts["split"].values())
    classes: dict[str, int] = {}
    for counts in (facts["classes"] or {}).values():
        for name, n in counts.items():
            classes[name] = classes.get(name, 0) + n
    return Counts(examples, tuple(classes.values()), tuple(facts["given"])) if examples < SMALL else None


def larger_test(counts: Counts, settings: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A split with enough test examples, where none is given, and what is to be said about it."""
    if set(NAMES) & set(settings) or counts.given:
        return {}, []
    wanted = max([TEST / counts.examples, *(OF_CLASS / n for n in counts.classes if n >= COMMON)])
    test = round(100 * min(MOST, max(LEAST, wanted)))
    if test <= 100 * LEAST:
        return {}, []
    valid = min(test, 10)
    return {"split": f"{100 - test - valid}/{valid}/{test}"}, [
        f"{counts.examples:,} examples are few, so {test} % of them are for test; {option('split')} changes that"
    ]


def with_folds(
    asked: CompareConfig, counts: Counts, paces: Mapping[str, Pace], timing: Timing, notes: list[str]
) -> tuple[CompareConfig, list[str]]:
    """What is asked with as many folds as there is time for, and notes with what is to be said about it."""
    if "valid" in counts.given or not paces:
        return asked, notes
    needs = max(SECONDS, statistics.median(pace.needs(STEPS) for pace in paces.values()))
    few = f"{counts.examples:,} examples are few"
    for n in FOLDS:
        if counts.examples >= 2 * n and timing.share(n) >= needs:
            return asked.model_copy(update={"folds": n}), [
                *notes,
                f"{few}, so models are selected by {n}-fold cross-validation, and those of all folds predict test data "
                f"together; {option('folds', 'none')} switches that off",
            ]
    longer = enough(timing.budget(needs, FOLDS[-1]))
    return asked, [
        *notes,
        f"{few}, but there is no time for cross-validation; a {option('time')} of about {in_seconds(longer)} is enough "
        f"for {FOLDS[-1]} folds",
    ]
