"""Which task some data is for: every task scores one look at it, and the surest is taken."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel

from unrolled.core import discover
from unrolled.core.config import Config, merge
from unrolled.core.errors import DataError, UsageError, listed
from unrolled.core.front import option
from unrolled.core.opening import open_regular
from unrolled.core.task import Guess, Task
from unrolled.data.config import FilesConfig
from unrolled.data.files.file_form import FileForm, files_as
from unrolled.data.files.text_file import named_path
from unrolled.data.look import Look, look
from unrolled.runs.build import make_task
from unrolled.runs.config import RunConfig, full_keys
from unrolled.runs.keys import leaf_paths, no_setting

SHOWN = 8  # arrays that a sentence names


class Guessed(NamedTuple):
    """A task that was not named."""

    task: str
    why: str

    def __str__(self) -> str:
        return f"{self.task} (guessed because {self.why}; override with {option('task', 'NAME')})"


def guess_task(data: Any, settings: Mapping[str, Any], model: str | None = None) -> Guessed:
    """The task that the data is most surely for, of those that have the settings, and why.

    Those of the model, where one is named, say nothing of the data, whatever tasks have a setting of the same name.
    """
    of_model = set() if model is None else _words(discover.model(model).config)
    of_data = {key: value for key, value in settings.items() if key not in of_model and not key.startswith("model.")}
    given = {key.rsplit(".", 1)[-1]: value for key, value in of_data.items()}
    able, told = _able(set(given))
    with files_as(form_in(settings)):
        seen = look(data)
    _require_existing(seen)
    guesses = {name: _guess(name, seen, given) for name in able}
    sure = {name: guess for name, guess in guesses.items() if guess is not None}
    if not sure:
        those = f" of {listed(able)}, which have {listed(sorted(told))}," if told else ""
        arrays = ", ".join(f"{name} {list(np.shape(array))}" for name, array in islice(seen.arrays.items(), SHOWN))
        target = f", and the array of targets with {option('target')}" if arrays and "target" not in given else ""
        held = f", whose arrays are {arrays}" if arrays else ""
        raise UsageError(f"cannot guess the task from {seen.name}{held}; name one{those} with {option('task')}{target}")
    best = max(sure, key=lambda name: sure[name].certainty)
    return Guessed(best, sure[best].why)


def _require_existing(seen: Look) -> None:
    """A path that leads nowhere is reported before a task is guessed for it."""
    if seen.is_file and not seen.splits:
        try:
            path = named_path(seen.source)
        except DataError:  # it cannot be one: told by whoever prepares the data
            return
        if not path.exists():
            open_regular(path).close()


def form_in(settings: Mapping[str, Any]) -> FileForm:
    """How files are read by what is given in settings."""
    return FilesConfig.among({key.removeprefix("files."): value for key, value in settings.items()}).form()


def _guess(task: str, seen: Look, given: Mapping[str, Any]) -> Guess | None:
    """What a task says; a value that it cannot have may be that of a setting of the same name that models have."""
    guess = discover.tasks.load(task).Task.guess
    try:
        found: Guess | None = guess(seen, given)
    except UsageError:
        models = {word for name in discover.models.names() for word in _words(discover.model(name).config)}
        if not given.keys() & models:
            raise
        found = guess(seen, {key: value for key, value in given.items() if key not in models})
    return found


def chosen(task: str | None, model: str | None, data: Any, settings: Mapping[str, Any]) -> tuple[str, str, str]:
    """The task and the model of a run, and a line on what nothing named: a guessed task, a default model."""
    said = []
    if task is None:
        guessed = guess_task(data, settings, model)
        task = guessed.task
        said.append(f"task {guessed}")
    if model is None:
        model = default_model(task, settings)
        said.append(f"model {model} (the default; override with {option('model', 'NAME')})")
    return task, model, ", ".join(said)


def default_model(task: str, settings: Mapping[str, Any]) -> str:
    """The model of a task where none is named, which may depend on its settings."""
    return task_alone(task, settings).DEFAULT_MODEL


def task_alone(task: str, settings: Mapping[str, Any]) -> Task:
    """A task under those settings that are its own or of its data; others are of a model, which checks them."""
    of_task = discover.tasks.load(task).Config
    own: dict[str, Any] = {}
    for key, value in settings.items():
        try:
            own |= full_keys({key: value}, Config, of_task)
        except UsageError:
            models = {word for name in discover.models.names() for word in _words(discover.model(name).config)}
            if key.rsplit(".", 1)[-1] not in models:
                raise UsageError(no_setting(key, [*leaf_paths(RunConfig), *leaf_paths(of_task), *models])) from None
    return make_task(RunConfig.parse(merge({"task": task}, own)))


def prepared_task(task: str, settings: Mapping[str, Any], data: Any) -> Task:
    """The same, with its data."""
    found = task_alone(task, settings)
    with files_as(form_in(settings)):
        found.prepare(data)
    return found


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
