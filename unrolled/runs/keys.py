"""Dotted keys of settings: of nested tables, of a config class, and those that there are not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from unrolled.core import discover
from unrolled.core.config import other_words
from unrolled.core.errors import listed, nearest
from unrolled.core.front import ARGUMENTS, option, reader


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted keys.

    >>> flat({"a": {"b": 1}, "c": [2]})
    {'a.b': 1, 'c': [2]}
    """
    result: dict[str, Any] = {}
    for key, value in values.items():
        result |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return result


def leaf_paths(config: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every dotted key of a config class."""
    for name, field in config.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from leaf_paths(field.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def no_setting(key: str, paths: list[str]) -> str:
    """That there is no such setting: who has it, or which one was probably meant."""
    last = _last(key)
    what = f"this task has no setting '{last}'" if key.startswith("task.") else f"there is no setting '{key}'"
    hint = f" (use {option('time', '5m')} to limit the training time)" if last == "time" else ""
    for room in (discover.tasks,) if key.startswith("task.") else (discover.tasks, discover.models):
        names = [name for name in room.names() if last in map(_last, leaf_paths(_config_of(room, name)))]
        if names:
            owners = f"{room.kind}s {listed(names)} have" if len(names) > 1 else f"{room.kind} {names[0]} has"
            return f"{what}{hint}; the {owners} it"
    words = {path.split(".", 1)[-1] for path in paths} - {"model_settings", "task_settings"}
    words |= ARGUMENTS if reader() == "python" else set()
    where = "`unrolled models NAME` and `unrolled tasks NAME` list the settings of a model and of a task"
    return f"{what}{hint}; {nearest(last, words, other_words(words))} ({where})"


def _config_of(room: discover.Room, name: str) -> type[BaseModel]:
    found: type[BaseModel] = discover.model(name).config if room is discover.models else room.load(name).Config
    return found


def _last(key: str) -> str:
    return key.rsplit(".", 1)[-1]
