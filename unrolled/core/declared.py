"""What every declaration is checked for: its names, its settings and its functions. Imports no torch."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import chain
from typing import Any

from unrolled.core.config import Config
from unrolled.core.errors import UsageError

Faults = Iterable[tuple[str, str]]
"""Fields with a wrong value, and what is wrong."""


class WrongField(UsageError):
    """A field of a declaration that is wrong; the loader of the file adds the line."""

    def __init__(self, declaration: type[Any], name: str, why: str) -> None:
        super().__init__(why)
        self.declaration, self.name = declaration, name


def require_sound(spec: Any, settings: str, arguments: Mapping[str, tuple[str, ...]], own: Faults = ()) -> None:
    """Refuse a declaration with a wrong field: its summary, its other names, the class of its settings, which is the
    field `settings`, the functions that take these arguments, or one of its own faults."""
    for name, why in chain(_faults(spec, settings, arguments), own):
        raise WrongField(type(spec), name, why)


def _faults(spec: Any, settings: str, arguments: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    given = vars(spec)
    if not isinstance(given["summary"], str):
        yield "summary", invalid(spec, "summary", "a string")
    aliases = given["aliases"]
    if not (isinstance(aliases, tuple) and all(isinstance(each, str) for each in aliases)):
        yield "aliases", invalid(spec, "aliases", 'a tuple of strings, such as ("name",)')
    if why := _misconfigured(spec, settings):
        yield settings, why
    optional = {each.name for each in fields(spec) if each.default is None}
    for name, words in arguments.items():
        if not (given[name] is None and name in optional) and (why := _miscalled(given[name], name, words)):
            yield name, why


def invalid(spec: Any, name: str, expected: str) -> str:
    """The sentence about a field of a declaration."""
    return f"invalid value {name} = {vars(spec)[name]!r}: expected {expected}"


def _misconfigured(spec: Any, name: str) -> str | None:
    config = vars(spec)[name]
    if not (isinstance(config, type) and issubclass(config, Config)):
        return invalid(spec, name, "a class derived from unrolled.core.config.Config")
    unset = [each for each, setting in config.model_fields.items() if setting.is_required()]
    wanted = f"the settings {', '.join(unset)} of {config.__name__} have no default value; give each one"
    return wanted if unset else None


def _miscalled(given: Any, name: str, arguments: tuple[str, ...]) -> str | None:
    """Why a field of a declaration is no function of these arguments; None: it is."""
    words = ", ".join(arguments)
    if not callable(given):
        return f"{name} must be a function {name}({words}), found {given!r}"
    try:
        inspect.signature(given).bind(*arguments)
    except TypeError:
        return f"{name} must take ({words}), found {name}{inspect.signature(given)}"
    except ValueError:  # a built-in without a signature
        return None
    return None
