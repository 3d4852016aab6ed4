"""Which task some data is for: every task scores one look at it, and the surest is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from unrolled.core import discover
from unrolled.core.errors import UsageError, listed
from unrolled.core.front import option
from unrolled.data.look import look
from unrolled.runs.config import RunConfig, leaf_paths


class Guessed(NamedTuple):
    """A task that was not named."""

    task: str
    why: str

    def __str__(self) -> str:
        return f"{self.task} (guessed because {self.why}; {option('task', 'NAME')} overrules it)"


def guess_task(data: Any, settings: Mapping[str, Any]) -> Guessed:
    """The task that the data is most surely for, of those that have the settings, and why."""
    given = {key.rsplit(".", 1)[-1]: value for key, value in settings.items()}
    able, told = _able(set(given))
    seen = look(data)
    guesses = {name: discover.tasks.load(name).Task.guess(seen, given) for name in able}
    sure = {name: guess for name, guess in guesses.items() if guess is not None}
    if not sure:
        those = f" of {listed(able)}, which have {listed(sorted(told))}," if told else ""
        raise UsageError(f"the data does not show which task it is for; name one{those} with {option('task')}")
    best = max(sure, key=lambda name: sure[name].certainty)
    return Guessed(best, sure[best].why)


def _able(given: set[str]) -> tuple[list[str], set[str]]:
    """The tasks that have all settings which only tasks have, and these settings."""
    known = {name: _words(discover.tasks.load(name).Config) for name in discover.tasks.names()}
    told = (given & set().union(*known.values())) - _words(RunConfig)
    for name in discover.models.names() if told else ():
        told -= _words(discover.model(name).config)
    return [name for name, words in known.items() if told <= words] or list(known), told


def _words(config: type[BaseModel]) -> set[str]:
    """The last words of all settings."""
    return {path.rsplit(".", 1)[-1] for path in leaf_paths(config)}
