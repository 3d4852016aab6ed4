"""The configuration of the runs of a group, what is not at its default first; and how to repeat everything."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from unrolled import data
from unrolled.core.config import Config
from unrolled.report.group import Group, lines_of
from unrolled.report.read import RunFacts
from unrolled.runs import uses
from unrolled.runs.config import RunConfig
from unrolled.runs.keys import flat

FACTS = ("task", "model", "source", "versions", "own_file", "own_file_sha256")  # told elsewhere on the page


@cache
def readings() -> list[type[Config]]:
    """All settings of how data is read: the files named reading.py of data/, none of which imports torch."""
    names = (module.name for module in walk_packages(data.__path__, f"{data.__name__}."))
    files = [import_module(name) for name in names if name.endswith(".reading")]
    kinds = {kind for file in files for kind in vars(file).values() if isinstance(kind, type)}
    return sorted((kind for kind in kinds if issubclass(kind, Config) and kind is not Config), key=str)


def reading_defaults(settings: Any) -> dict[str, Any]:
    """The defaults of how a task reads its data, known by the names of its settings; so no task need be imported."""
    found: dict[str, Any] = {}
    for group in settings if isinstance(settings, Mapping) else ():  # a directory may hold anything
        own = flat(settings[group]) if isinstance(settings[group], Mapping) else {}
        each = (flat(kind().model_dump(mode="json")) for kind in readings())
        defaults: dict[str, Any] = next((values for values in each if values.keys() == own.keys()), {})
        found |= {f"task_settings.{group}.{key}": value for key, value in defaults.items()}
    return found


def changed(run: RunFacts) -> dict[str, str]:
    """The settings of a run that differ from the defaults, and all those of its model and task."""
    defaults = flat(RunConfig().model_dump(mode="json")) | reading_defaults(run.config.get("task_settings", {}))
    own = {key: value for key, value in flat(run.config).items() if key.split(".")[0] not in FACTS}
    return {
        key.replace("_settings.", "."): words(value)
        for key, value in own.items()
        if key not in defaults or value != defaults[key]
    }


def words(value: Any) -> str:
    """A setting as `--set` takes it; a member of an ensemble by its name.

    >>> words([0.5, None, True]), words([{"model": "lstm", "members": 1}])
    ('[0.5, none, true]', '[lstm]')
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(map(words, value)) + "]"
    if isinstance(value, Mapping) and "model" in value:
        return str(value["model"])
    return f"{value:g}" if isinstance(value, float) else str(value)


def setting_rows(group: Group) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The labels, and a row per setting with its value for each; settings that all share come first."""
    runs = group.first_runs()
    each = [changed(run) for _, run in runs]
    keys = sorted({key for values in each for key in values})
    rows = [(key, [values.get(key, "") for values in each]) for key in keys]
    rows.sort(key=lambda row: (row[0].startswith("model."), len(set(row[1])) > 1, row[0]))
    told = ["; ".join(lines_of(run.result.get("recipe"))) for _, run in runs]
    if any(told):
        rows.insert(0, ("chosen", told))
    return [label for label, _ in runs], rows


def commands(group: Group) -> list[tuple[str, str]]:
    """What it does, and the command that does it."""
    found: list[tuple[str, str]] = []
    if group.table.get("command"):
        found.append(("run this comparison again", str(group.table["command"])))
    for label, run in group.first_runs()[: 1 if group.is_comparison else None]:
        more, data = uses.own_words(run.config.get("own_file")), uses.data_words(run.config.get("source"))
        if not group.is_comparison:
            again = f"unrolled train {data} --recipe {shlex.quote(str(run.path / 'recipe.toml'))}{more} -o NEW"
            found.append((f"reproduce {label} exactly", again))
        able = uses.commands(run.config, run.result, str(run.path))
        found += [(f"{label}: {what}", command) for what, command in able]
    where = " ".join(shlex.quote(str(place)) for place in group.places)
    return [*found, ("write this report again", f"unrolled report {where}")]
