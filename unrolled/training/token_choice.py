"""What a token is, where nobody says so: chosen by a quick look at validation data.

Every way to cut the texts is tried with a linear model of tokens and pairs (layers/counting/token_pairs.py), which
takes a second: words win where words matter, characters where texts are names or strings without spaces. Of ways whose
errors hardly differ the one with the shortest sequences is taken, because models then train fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from unrolled.core.outline import TokenLook
from unrolled.core.task import Task
from unrolled.data.files.file_form import files_as
from unrolled.runs.build import make_task
from unrolled.runs.config import RunConfig
from unrolled.runs.guess import form_in, task_alone
from unrolled.training import recipe
from unrolled.training.schedule import DEFAULT_TIME

WORDS, SUBWORDS = 20_000, 4_000  # sizes of vocabularies, at most
WAYS: tuple[dict[str, Any], ...] = (
    {"data.tokens": "word", "data.vocabulary": WORDS},
    {"data.tokens": "char"},
    {"data.tokens": "bpe", "data.vocabulary": SUBWORDS},
)
TIME = 300.0  # seconds from which on all ways are tried; with less the last, which takes as long as both others, is not
GIVEN = {"data.tokens", "data.vocabulary"}
LEAST = 1_000  # words; where there are more, those that training data has once become <unknown>, which is then known
NEAR = 1.0  # standard errors by which a way may be worse than the best
ALONE = 1.5  # mean number of words of a text up to which words must be better than all else
SEVERAL, NEAR_WORDS = 4.0, 2.0  # mean number of words of a text from which on words may be worse by more of them


def chosen(
    task: Task, given: Collection[str], seconds: float, prepared: Callable[[dict[str, Any]], Task]
) -> tuple[dict[str, Any], str]:
    """Settings of data for all models, and that in words; nothing where tokens were given or do not matter.

    There are so many seconds in all. `task` has read its data, `prepared` gives one that has read it under settings.
    """
    if GIVEN & set(given) or task.token_look() is None:
        return {}, ""
    ways = WAYS if seconds >= TIME else WAYS[:-1]
    tried = {way["data.tokens"]: look for way in ways if (look := prepared(way).token_look()) is not None}
    looks = dict(tried)
    least = min((look.error for name, look in looks.items() if name != "word"), default=1.0)
    if "word" in looks and looks["word"].length < ALONE and looks["word"].error >= least:
        del looks["word"]  # a text is a word, and another one in nearly every text
    best = min(looks.values())
    near = {name: best.error + _near(name, look) * best.spread for name, look in looks.items()}
    name, look = next((name, look) for name, look in looks.items() if look.error <= near[name])
    way = next(way for way in ways if way["data.tokens"] == name)
    if name == "word":
        way = {**way, "data.vocabulary": max(LEAST, min(WORDS, look.repeated))}
    told = ", ".join(f"{name} {look.error:.3f}" for name, look in tried.items())
    kept = f"{name}, at most {way['data.vocabulary']:,}" if "data.vocabulary" in way else name
    return way, f"tokens: {kept} (validation error of a linear model: {told})"


def _near(name: str, look: TokenLook) -> float:
    """By how much a way may be worse than the best: trained models are faster by words, and learn from them sooner."""
    return NEAR_WORDS if name == "word" and look.length >= SEVERAL else NEAR


def for_all(
    task: str, settings: dict[str, Any], data: Any, prepared: Task, seconds: float
) -> tuple[dict[str, Any], Task, list[str]]:
    """The settings of all runs of a comparison with the tokens that are best, a task that has read the data so, and
    that in words."""

    def reading(more: dict[str, Any]) -> Task:
        found = task_alone(task, {**settings, **more})
        with files_as(form_in(settings)):
            found.prepare(data)
        return found

    given = {key if "." in key else f"data.{key}" for key in settings}
    way, words = chosen(prepared, given, seconds, reading)
    return ({**settings, **way}, reading(way), [words]) if way else (settings, prepared, [])


def for_run(config: RunConfig, task: Task, data: Any, given: Collection[str]) -> tuple[RunConfig, Task, list[str]]:
    """The same for a run by itself, whose task has read its data."""
    if not recipe.applies(config, task):
        return config, task, []

    def reading(more: dict[str, Any]) -> tuple[RunConfig, Task]:
        own = {key.removeprefix("data."): value for key, value in more.items()}
        changed = config.model_copy(update={"data": config.data.updated(own)})
        found = make_task(changed)
        found.prepare(data)
        return changed, found

    way, words = chosen(task, given, config.budget.time or DEFAULT_TIME, lambda more: reading(more)[1])
    return (*reading(way), [words]) if way else (config, task, [])
