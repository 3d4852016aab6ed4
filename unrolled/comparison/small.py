"""Small data: splits that are large enough to distinguish models, and folds in place of a small validation split.

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
MOST_VALID = 0.15  # share that is for validation, where as many examples are wanted; folds use them for training too
FOLDS = (5, 3)  # the first that there is time for
STEPS, SECONDS = 200, 6.0  # of a run, in the median of all models, that folds must leave time for
NAMES = ("split", "data.split")


class Counts(NamedTuple):
    """What is known of prepared data."""

    examples: int
    classes: tuple[int, ...]
    """examples of each class; none where targets are no classes"""
    given: tuple[str, ...]
    """splits that the data or the user gives"""
    divided: int | None = None
    """examples that no given split has but that of training; none: all"""


def is_automatic(asked: CompareConfig) -> bool:
    """Whether anything is to be chosen: a number of steps or of runs is a promise of what is done."""
    once = asked.steps is None and asked.seeds == 1 and asked.fractions == "1"
    return asked.folds == AUTO and not asked.plain and once


def counted(
    asked: CompareConfig, task: Task, settings: Mapping[str, Any]
) -> tuple[Counts | None, dict[str, Any], list[str]]:
    """The counts of small data for which something may be chosen, settings of larger splits, and what is to be said
    about them; None: the data is not small, or all was asked for."""
    counts = counts_of(task) if is_automatic(asked) else None
    return (None, {}, []) if counts is None else (counts, *larger_splits(counts, settings))


def counts_of(task: Task) -> Counts | None:
    """The counts of a task that can be cross-validated; None: it cannot, or the data is not small."""
    if task.FOLD is None:
        return None
    facts = task.facts()
    by_split = {name: each["examples"] for name, each in facts["split"].items()}
    examples, given = sum(by_split.values()), tuple(facts["given"])
    classes: dict[str, int] = {}
    for counts in (facts["classes"] or {}).values():
        for name, n in counts.items():
            classes[name] = classes.get(name, 0) + n
    divided = examples - sum(by_split.get(name, 0) for name in {"valid", "test"} & set(given))
    return Counts(examples, tuple(classes.values()), given, divided) if examples < SMALL else None


def larger_splits(counts: Counts, settings: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A split with enough examples for test and for validation, where none is given, and what is to be said about it;
    where only the test data is given, with enough for validation, which a note of the data tells."""
    if set(NAMES) & set(settings) or "valid" in counts.given:
        return {}, []
    if "test" in counts.given:
        valid = _percent(counts, MOST_VALID)
        return ({"split": f"{100 - valid}/{valid}"} if valid > 100 * LEAST else {}), []
    test, valid = _percent(counts, MOST), _percent(counts, MOST_VALID)
    if test <= 100 * LEAST:
        return {}, []
    return {"split": f"{100 - test - valid}/{valid}/{test}"}, [
        f"{counts.examples:,} examples are few, so {test} % of them are for test; {option('split')} changes that"
    ]


def _percent(counts: Counts, most: float) -> int:
    """The share of the examples that models can be distinguished by, in per cent."""
    n = counts.examples if counts.divided is None else max(counts.divided, 1)
    of_class = (OF_CLASS * counts.examples / (k * n) for k in counts.classes if k >= COMMON)
    return round(100 * min(most, max([LEAST, TEST / n, *of_class])))


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
