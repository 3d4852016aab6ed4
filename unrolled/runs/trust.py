"""What a saved directory names and its reader has not: nothing of it is executed or opened.

A run or a comparison may come from anybody. Its settings say which data it was trained on, which Python file defines
its model, which run it began with; all that is only shown. To use it, the user names it again, on the same command
line, and its fingerprint is compared before anything happens. Built-in data is part of this package and needs no name,
unless its settings ask for more of it than usual.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import unrolled
from unrolled.core import discover
from unrolled.core.errors import DataError, Interrupted, MissingColumn, Misused, UsageError
from unrolled.core.front import invocation, option, quoted
from unrolled.core.opening import CODE, read_bytes, shortened
from unrolled.data.builtin_sets import BUILTIN, is_usual
from unrolled.data.given_splits import MEMORY, given_sources
from unrolled.runs.config import RunConfig
from unrolled.runs.storage.formats import later_release
from unrolled.runs.storage.manifest import ADVICE


@contextmanager
def saved(place: str | Path, by: object = None, typed: tuple[type[UsageError], ...] = ()) -> Iterator[None]:
    """Within it, what is wrong with a setting is wrong with the directory that holds it, not with what was typed.

    `by` is the release that wrote it, where that is known: of a later one it is said that it is. `typed` are the errors
    that are of what was typed all the same.
    """
    try:
        yield
    except UsageError as error:
        if isinstance(error, typed):
            raise
        if _release(by) > _release(unrolled.__version__):
            later = later_release(place, f"unrolled {shortened(str(by))}, this is {unrolled.__version__}")
            raise DataError(f"{later} ({error})") from None
        raise DataError(f"{place}: {error}") from None


@contextmanager
def opening(place: str | Path, by: object = None) -> Iterator[None]:
    """The same, where everything that is read comes from the directory: what does not fit together is damaged."""
    try:
        with saved(place, by), discover.models.own_mistakes():
            yield
    except DataError as error:
        raise error if str(error).startswith(str(place)) else DataError(f"{place}: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, RecursionError, RuntimeError, TypeError, ValueError) as error:
        said = str(error).partition("\n")[0]  # torch adds where in its own code that was
        why = f"{type(error).__name__}: {shortened(said)}"
        raise DataError(f"{place}: its files do not match each other ({why}); {ADVICE}") from error


@contextmanager
def reading(place: str | Path, data: Any, own: str | None = None) -> Iterator[None]:
    """Within it, data is read as the run in a directory read its own: what does not fit is wrong with the data, not
    with what was typed. What is wrong with `data` for every reader stays so, unless the directory named it (`own`)."""
    try:
        yield
    except MissingColumn as error:
        raise DataError(error.for_run) from None
    except Misused as error:
        if not isinstance(data, str) or data != own:
            raise
        raise DataError(f"{place}: {error}") from None
    except UsageError as error:
        raise DataError(f"{error}; {place} reads data with the settings that it was trained with") from None


def _release(version: object) -> tuple[int, ...]:
    """
    >>> _release("0.10.2") > _release("0.9"), _release(None), _release("1" * 5000)
    (True, (), ())
    """
    found = re.match(r"\d{1,9}(\.\d{1,9}){0,3}", version) if isinstance(version, str) else None
    return tuple(map(int, found[0].split("."))) if found and len(str(version)) < 100 else ()


def own_file_of(place: Path, name: str | None, sha256: str | None, given: str | Path | None) -> None:
    """What was made with a user's file needs that file again, unchanged, before it is run."""
    if name is None and given is not None:
        flag = option("own_file")
        raise UsageError(
            f"{place}: this run was made without a Python file of yours; leave out {flag} {shortened(given)}"
        )
    if name is None:
        return
    if given is None:
        again = option("own_file", f"PATH/{shortened(Path(name).name)}")
        raise DataError(
            f"{place}: this run was made with a Python file, which is run only if you name it explicitly; add {again}"
        )
    if not Path(given).is_file():
        raise UsageError(f"{given}: no such Python file; give the file that {place} was made with")
    discover.join(given, _told(sha256, place))


def _told(sha256: str | None, place: Path) -> str:
    if sha256 is None:
        raise DataError(
            f"{place}: the sha256 of the Python file that it was made with is not recorded, so no file is run"
        )
    return sha256


def fingerprint(path: str | Path) -> str:
    """The sha256 of a user's file."""
    return hashlib.sha256(read_bytes(path, CODE)).hexdigest()


def _needs_no_name(source: str) -> bool:
    """Whether data may be used because a directory names it: built-in, and no more work than its usual settings."""
    return source.startswith(BUILTIN) and is_usual(source)


def data_of(place: Path, source: str, beside: Mapping[Any, str], given: Any, again: str) -> Any:
    """The data to open: what was given, or built-in data; `beside` names the splits that were given to training,
    which are given again, and `again` is how to do so."""
    found = given_sources(given)
    if "train" not in found:
        found = {"train": _own_data(place, source, again), **found}
    for part, name in beside.items():
        if part not in found:
            where = (
                "came from memory"
                if name == MEMORY
                else f"is {shortened(name)}, which is opened only if you name it explicitly"
            )
            raise DataError(f"{place}: its {part} data {where}; give it again: {again}")
    more = next((part for part in found if part != "train" and part not in beside), None)
    if more is not None and source != MEMORY:
        raise UsageError(f"{place}: this run was trained without separate {more} data; leave out {option(more)}")
    return found if len(found) > 1 else found["train"]


def _own_data(place: Path, source: str, again: str) -> str:
    if _needs_no_name(source):
        return source
    if source == MEMORY:
        raise DataError(f"{place}: its data came from memory; give the same data again: {again}")
    raise DataError(
        f"{place}: its data is {shortened(source)}, which is opened only if you name it explicitly; give it "
        f"again: {again}"
    )


def resume_command(verb: str, place: Path, source: str, given: Mapping[str, Any], by: str = "resume") -> str:
    """How to resume a run or a comparison, or to join one; data that must be named is part of it."""
    data = None if _needs_no_name(source) else "DATA" if source in (MEMORY, "") else quoted(shortened(source))
    return invocation(verb, {by: str(place)} | {key: value for key, value in given.items() if value}, data)


def named_beside(given: Mapping[Any, str]) -> dict[str, str]:
    """The options that name given splits again."""
    named = sorted(given.items(), reverse=True)  # valid, test
    return {str(part): "DATA" if name == MEMORY else shortened(str(name)) for part, name in named}


def resume_training(place: Path, config: RunConfig) -> str:
    """The command that resumes a run."""
    own = {"own_file": discover.joined_file(config.own_file) or config.own_file, "from_run": config.start.from_run}
    own["vectors"] = config.start.vectors
    own["decoder_from"] = config.start.decoder_from
    own |= paths_among(config.task_settings) | named_beside(config.given)
    return resume_command("train", place, config.source, own)


def stopped(where: str, place: Path, config: RunConfig) -> Interrupted:
    """That training was stopped, and how to resume it."""
    return Interrupted(f"{where}; resume with: {resume_training(place, config)}")


def is_same(given: str | Path | None, before: str) -> bool:
    """Whether a path that was given is the saved one, however it is spelt; neither is opened."""
    return given is not None and os.path.realpath(given) == os.path.realpath(before)


def is_path(key: str) -> bool:
    """Whether a setting names a file or a folder.

    >>> is_path("task.pairs.target_file"), is_path("lr")
    (True, False)
    """
    return key.split(".")[-1] in ("from_run", "decoder_from", "target_file", "teacher_run", "vectors")


def paths_among(settings: Mapping[str, Any]) -> dict[str, str]:
    """The paths in settings by the last word of their key, at any depth.

    >>> paths_among({"pairs": {"target_file": "a.txt"}, "start.from_run": None})
    {'target_file': 'a.txt'}
    """
    found: dict[str, str] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found |= paths_among(value)
        elif is_path(key) and value is not None:
            found[key.split(".")[-1]] = str(value)
    return found
