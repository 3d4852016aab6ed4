"""What a model file says of itself: read and checked in one place, so that a wrong file gets one clear sentence.

| name | says |
|---|---|
| `KIND` | what `make` returns: causal, encoder, table or conditional |
| `Config`, `TINY`, `make` | its settings, those with which the laws are checked, and the body |
| `INPUT` | tokens or vectors, where the body reads what the task gives without a layer in between |
| `ANSWERS` | whole or each, where it predicts only once for a sequence, or only at each position |
| `OWNS_HEAD` | its output is as wide as the targets |
| `FEATURES` | of a table: counts, tf-idf or nothing |
| `CLOSED_FORM` | kinds of targets for which its `solve` gives the weights, without gradient descent |
| `PRESET`, `RECIPE`, `REFERENCE` | when `compare` takes it, advice for training, a source |

Imports no torch.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from unrolled.core.config import Config
from unrolled.core.errors import UnrolledError, UsageError, nearest

TARGETS = ("tokens", "bits", "class", "classes", "numbers", "tags", "series")
CHOICES: Mapping[str, tuple[str, ...]] = {
    "KIND": ("causal", "encoder", "table", "conditional"),
    "INPUT": ("tokens", "vectors"),
    "ANSWERS": ("whole", "each"),
    "FEATURES": ("counts", "tf-idf", "nothing"),
    "PRESET": ("quick", "standard", "thorough"),
}
NEEDS = ("KIND", "Config", "make", "TINY")


class Declared(NamedTuple):
    """A model file in values."""

    kind: str
    input: str | None
    answers: str | None
    owns_head: bool
    features: str | None
    closed_form: tuple[str, ...]
    preset: str
    recipe: Mapping[str, Any]
    reference: str


def declared(module: ModuleType) -> Declared:
    """What a checked file says; whatever it does not say has its usual value."""
    said = vars(module)
    return Declared(
        said["KIND"], said.get("INPUT"), said.get("ANSWERS"), said.get("OWNS_HEAD", False), said.get("FEATURES"),
        tuple(said.get("CLOSED_FORM", ())), said.get("PRESET", "thorough"), said.get("RECIPE", {}),
        said.get("REFERENCE", ""),
    )  # fmt: skip


def check(module: ModuleType) -> None:
    """Refuse a file that says something wrong, with its path and the name that is wrong."""
    for fault in (_choices, _settings, _make, _others):
        wrong = fault(module)
        if wrong:
            raise UsageError(f"{module.__file__}: {wrong}; see docs/own_model.md")


def _choices(module: ModuleType) -> str | None:
    said = vars(module)
    for name, choices in CHOICES.items():
        if name in said and said[name] not in choices:
            found = said[name]
            hint = f" ({nearest(found, choices)})" if isinstance(found, str) else ""
            return f"invalid value {name} = {found!r}: expected one of {', '.join(choices)}{hint}"
    if said["KIND"] == "table" and "FEATURES" not in said:
        return f"a model of KIND table must define FEATURES: one of {', '.join(CHOICES['FEATURES'])}"
    return None


def _settings(module: ModuleType) -> str | None:
    config, tiny = module.Config, module.TINY
    if not (isinstance(config, type) and issubclass(config, Config)):
        return f"Config must be a class derived from unrolled.core.config.Config, found {config!r}"
    if not isinstance(tiny, config):
        return f"TINY must be a Config of this file, such as Config(), found {tiny!r}"
    unset = [name for name, field in config.model_fields.items() if field.is_required()]
    return f"the settings {', '.join(unset)} of Config have no default value" if unset else None


def _make(module: ModuleType) -> str | None:
    words = "config, d_in, d_out" + (", d_source" if module.KIND == "conditional" else "")
    if not callable(module.make):
        return f"make must be a function make({words}), found {module.make!r}"
    try:
        inspect.signature(module.make).bind(*words.split(", "))
    except TypeError:
        return f"make must take ({words}), found make{inspect.signature(module.make)}"
    except ValueError:  # a built-in without a signature
        return None
    return None


def _others(module: ModuleType) -> str | None:
    said = vars(module)
    if not isinstance(said.get("OWNS_HEAD", False), bool):
        return f"invalid value OWNS_HEAD = {said['OWNS_HEAD']!r}: expected True or False"
    if not isinstance(said.get("RECIPE", {}), Mapping):
        return f'invalid value RECIPE = {said["RECIPE"]!r}: expected settings by name, such as {{"lr": 1e-3}}'
    kinds = said.get("CLOSED_FORM", ())
    if isinstance(kinds, str) or not all(kind in TARGETS for kind in kinds):
        return f"invalid value CLOSED_FORM = {kinds!r}: expected a tuple of some of {', '.join(TARGETS)}"
    return None


@contextmanager
def blame(files: Callable[[], Mapping[str, Path]]) -> Iterator[None]:
    """An exception that comes out of a user's own file is told as that file's, with the line.

    `files` are the users' files by name, asked for only when something went wrong.
    """
    try:
        yield
    except UnrolledError:
        raise
    except Exception as error:
        own = {str(path) for path in files().values()}
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if frame.filename in own:
                raise UsageError(
                    f"{frame.filename}, line {frame.lineno}, in {frame.name}: {type(error).__name__}: {error}"
                ) from error
        raise
